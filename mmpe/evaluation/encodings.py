"""The position encodings of a config: apart from the rest, and in words."""
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from mmpe.position import as_items

KEYS = ('positional_encoding', 'memory_positional_encoding')
# What a host has that doesn't say: see their signatures.
_DEFAULTS = {
    'mmpe.VisionTransformer': [dict(type='mmpe.PositionEmbedding')],
    'mmpe.TransformerNeck': [dict(type='mmpe.SinePositionalEncoding')],
}
_NAMES = dict(
    SinePositionalEncoding='sine',
    LearnedPositionalEncoding='learned',
    PositionEmbedding='learned table',
    LaPE='LaPE',
    PEG='PEG',
    ImageRPE='iRPE',
    ShawRPE="Shaw's RPE",
    HuangRPE="Huang's RPE",
    SASARPE="SASA's RPE",
    AxialDeepLabRPE="Axial-DeepLab's RPE",
    TransformerXLRPE="Transformer-XL's RPE",
    RelativePositionBias='relative bias')


def without_encodings(value: Any) -> Any:
    """A copy of a part of a config that says nothing of encodings."""
    if isinstance(value, Mapping):
        return {
            k: without_encodings(v)
            for k, v in value.items() if k not in KEYS
        }
    if isinstance(value, (list, tuple)):
        return [without_encodings(item) for item in value]
    return value


def encodings_of(cfg: Mapping) -> Dict[str, Any]:
    """All encodings of a config, by where they are.

    Args:
        cfg (Mapping): A whole config.

    Returns:
        dict[str, Any]: By keys such as ``backbone.positional_encoding``, in
        one spelling: lists of items with full types. ``None`` and ``'same'``
        stay as they are.
    """
    return {
        '.'.join([*place, key]): _one_spelling(value)
        for place, key, value in _walk(cfg.get('model') or {}, ())
    }


def _walk(value: Any, place: Tuple[str, ...]
          ) -> Iterator[Tuple[Tuple[str, ...], str, Any]]:
    if isinstance(value, Mapping):
        default = _DEFAULTS.get(value.get('type'))
        if default and KEYS[0] not in value:
            yield place, KEYS[0], default
        for key, item in value.items():
            if key in KEYS:
                yield place, key, item
            else:
                yield from _walk(item, (*place, str(key)))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _walk(item, (*place, str(i)))


def _one_spelling(value: Any) -> Any:
    try:
        items = as_items(value)
    except TypeError:  # None, or 'same' as the encoder
        return value
    return [_item(item) for item in items]


def _item(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    item = dict(item)
    kind = str(item.get('type'))
    if kind == 'SinePositionalEncoding':  # MMDetection's: ours is equal
        item['type'] = 'mmpe.SinePositionalEncoding'
    if item.get('type') == 'mmpe.SinePositionalEncoding':
        item.pop('num_feats', None)  # always half the width
    return item


def encodings_in_words(cfg: Mapping) -> str:
    """A line such as ``sine + iRPE (product, contextual, k)``.

    Args:
        cfg (Mapping): A whole config.

    Returns:
        str: ``none`` if there is none. What is in the backbone or the neck
        says so if there are several places.
    """
    found = encodings_of(cfg)
    hosts = {
        key.rpartition('.')[0]: value
        for key, value in found.items() if key.split('.')[-1] == KEYS[0]
    }
    parts = []
    for host, items in hosts.items():
        words = _list_in_words(items)
        parts.append(f'{_host(host)}: {words}' if len(hosts) > 1 else words)
    for key, value in found.items():
        # 'same' goes without saying.
        if key.split('.')[-1] == KEYS[1] and value != 'same':
            parts.append(f"decoder's keys: {_list_in_words(value or [])}")
    return '; '.join(parts) or 'none'


def _host(place: str) -> str:
    return ' '.join(p for p in place.split('.') if not p.isdigit()) or (
        'encoder')


def _list_in_words(items: Any) -> str:
    if not isinstance(items, list):
        return str(items)
    return ' + '.join(_item_in_words(item) for item in items) or 'none'


def _item_in_words(item: Any) -> str:
    if not isinstance(item, Mapping):
        return str(item)
    kind = str(item.get('type'))
    scope, _, name = kind.rpartition('.')
    known = scope in ('', 'mmpe') and name in _NAMES
    name = _NAMES[name] if known else name
    rest = {k: v for k, v in item.items() if k not in ('type', 'layers')}
    if name == 'PEG':
        words = _peg_in_words(rest)
    elif name == 'iRPE':
        words = _irpe_in_words(rest)
    elif name == 'sine':
        words = '1-D sine' if rest.get('dims') == 1 else name
    elif name == 'LaPE':
        form = rest.get('form', 'independent')
        words = name if form == 'independent' else f'{name} ({form})'
    elif known or not rest:
        words = name
    else:  # a user's own: what it is, its arguments say
        arguments = ', '.join(f'{k}={v!r}' for k, v in rest.items())
        words = f'{name} ({arguments})'
    layers = item.get('layers')
    return f'{words} in {_layers(layers)}' if isinstance(
        layers, (list, tuple)) else words


def _peg_in_words(item: Mapping) -> str:
    size, kind = item.get('kernel_size', 3), item.get('kind', 'depthwise')
    positions = item.get('positions', (0, ))
    if not _are_numbers(positions):
        return f'PEG at {positions}'
    after = [p for p in positions if p >= 0]
    words = [] if kind == 'depthwise' else [kind]
    words += [] if size == 3 else [f'{size}x{size}']
    words.append('PEG')
    if len(after) < len(positions):
        words.append('before layer 0')
    if after:
        words += ['and'] if len(after) < len(positions) else []
        words.append(f'after {_layers(after)}')
    return ' '.join(words)


def _irpe_in_words(item: Mapping) -> str:
    words = [
        str(item.get('method', 'product')),
        str(item.get('mode', 'contextual')),
        str(item.get('target', 'k'))
    ]
    words += [f'{key} {item[key]}' for key in ('ratio', 'alpha', 'beta',
                                               'gamma')
              if item.get(key) not in (None, 2, 2.0)]
    if item.get('index', 'piecewise') != 'piecewise':
        words.append(str(item['index']))
    if item.get('shared_heads', True) is not True:
        words.append('per head')
    return f"iRPE ({', '.join(words)})"


def _are_numbers(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(
        isinstance(v, int) for v in values)


def _layers(numbers: Sequence[int]) -> str:
    """``layer 0``, ``layers 0 to 4`` or ``layers 0 and 2``."""
    numbers = list(numbers)
    words: List[str] = [str(n) for n in numbers]
    if len(numbers) == 1:
        return f'layer {words[0]}'
    if len(numbers) > 2 and _are_numbers(numbers) and numbers == list(
            range(numbers[0], numbers[-1] + 1)):
        return f'layers {words[0]} to {words[-1]}'
    return f"layers {', '.join(words[:-1])} and {words[-1]}"
