"""Whether an import starts as the very function of its source."""
import inspect
from typing import Any, Dict, List, Mapping, Optional, Sequence

from torch import nn

from mmpe import position
from mmpe.backbones import VisionTransformer
from mmpe.engine.config_text import differences
from mmpe.necks import TransformerNeck
from mmpe.position import PositionEncodingList, as_items, check_items
from .family import Origin
from .fit import INITIALISED, RESIZED, Entry

# What an argument of an encoding says that its function doesn't depend on
# once it has numbers, or that shapes show.
_SHOWN = {'std', 'init', 'grid', 'num_feats', 'init_cfg', 'row_num_embed',
          'col_num_embed', 'trainable'}
# Keys of a model's config that change nothing in what its network computes,
# and those that are compared in another way.
LIST, MEMORY = 'positional_encoding', 'memory_positional_encoding'
_HOSTS = {f'mmpe.{cls.__name__}': cls
          for cls in (VisionTransformer, TransformerNeck)}
_APART = {'init_cfg', 'train_cfg', 'test_cfg', LIST, MEMORY,
          'frozen_stages', 'norm_eval', 'with_cp', 'num_cp', 'drop_path_rate',
          'ffn_drop', 'dropout', 'attn_drop', 'proj_drop',
          'sync_cls_avg_factor', 'requires_grad', 'use_gt', 'pad_mask'}


def reasons_against(model: nn.Module, cfg: Mapping, origin: Origin,
                    entries: Sequence[Entry],
                    source: Optional[Mapping]) -> List[str]:
    """Why a model doesn't, or may not, compute what its source does.

    Args:
        model (nn.Module): With the imported numbers.
        cfg (Mapping): Its config.
        origin (Origin): The position encodings of the source.
        entries (Sequence[Entry]): What became of each tensor.
        source (Mapping, optional): The config of the source's model, where
            the file has it.

    Returns:
        list[str]: Nothing, if it does as far as names, shapes and configs
        show.
    """
    reasons = []
    missed = [e for e in entries if e.is_missed]
    if missed:
        reasons.append(f'{len(missed)} tensors outside the position encodings '
                       'were not loaded')
    reasons += [f'{e.name} was resized' for e in entries
                if e.status == RESIZED][:1]
    reasons += [f'{name} has numbers that are not finite'
                for name, p in model.named_parameters()
                if not p.isfinite().all()][:1]
    if origin.unknown:
        return [*reasons, origin.unknown]
    if source is not None:
        reasons += _against_lists(model, cfg, source)
        return reasons + [
            f'CONFIG has another model.{key} than the source'
            for key, _, _ in differences(_plain(source), _plain(cfg))
        ][:3]
    new = {e.name for e in entries if e.status == INITIALISED}
    reasons += _against_origin(model, cfg, origin, new)
    return reasons + _against_host(cfg)


def host_of(cfg: Mapping) -> Mapping:
    """The part of a model's config that has the list of encodings."""
    if 'positional_encoding' in cfg:
        return cfg
    backbone = cfg.get('backbone', cfg)
    return backbone if isinstance(backbone, Mapping) else cfg


def lists_of(cfg: Any, at: str = '') -> Dict[str, Any]:
    """All lists of encodings of a model's config, by the name of the module
    that they become; hosts without one have their class's default."""
    out: Dict[str, Any] = {}
    if isinstance(cfg, (list, tuple)):
        for i, part in enumerate(cfg):
            out.update(lists_of(part, f'{at}{i}.'))
    if not isinstance(cfg, Mapping):
        return out
    host = _HOSTS.get(str(cfg.get('type')))
    if host is not None and LIST not in cfg:
        default = inspect.signature(host.__init__).parameters[LIST].default
        out[at + LIST] = as_items(default)
    for key, value in cfg.items():
        if key == LIST:
            out[at + key] = as_items(value)
        elif key == MEMORY:
            out[at + key] = value
        else:
            out.update(lists_of(value, f'{at}{key}.'))
    return out


def _against_lists(model: nn.Module, cfg: Mapping,
                   source: Mapping) -> List[str]:
    """Of a source whose config is known: each of its lists, in order."""
    own, theirs = lists_of(cfg), lists_of(source)
    reasons = []
    for name in sorted({*own, *theirs}):
        if name.endswith(MEMORY):
            if own.get(name, 'same') != theirs.get(name, 'same'):
                reasons.append("the decoder's keys have another encoding")
        else:
            reasons += _against_items(model, name, own.get(name, []),
                                      theirs.get(name, []))
    return reasons


def _against_items(model: nn.Module, name: str, own: Sequence[dict],
                   theirs: Sequence[dict], partial: bool = False
                   ) -> List[str]:
    """Whether a list is the source's, but for what changes nothing."""
    try:
        encodings = model.get_submodule(name).encodings
    except AttributeError:
        encodings = []
    aligned = len(encodings) == len(own)
    reasons, rest = [], list(theirs)
    for k, item in enumerate(own):
        # In order: a second one of a kind has a name of its own.
        if rest and _same(item, rest[0], partial):
            rest.pop(0)
        elif not (aligned and encodings[k].changes_nothing):
            reasons.append(f"{item['type']} is new")
    return reasons + [
        f"CONFIG has no {item.get('type')} such as the source's, in its order"
        for item in rest
    ]


def _against_origin(model: nn.Module, cfg: Mapping, origin: Origin,
                    new: set) -> List[str]:
    """Of a source that has no config: one list is known."""
    lists = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, PositionEncodingList)
        and not name.endswith(MEMORY)
    }
    main = next(iter(lists), LIST)
    default = _HOSTS.get(str(host_of(cfg).get('type')))
    items = host_of(cfg).get(LIST)
    if items is None:
        items = [] if default is None else inspect.signature(
            default.__init__).parameters[LIST].default
    reasons = _against_items(model, main, as_items(items), origin.items,
                             origin.partial)
    reasons += [f'{name} is new' for name, module in lists.items()
                if name != main and not all(
                    e.changes_nothing for e in module.encodings)]
    neutral = tuple(f'{name}.' for name, e in model.named_modules()
                    if getattr(e, 'changes_nothing', False))
    if not reasons:
        reasons += [f'{name} is new' for name in sorted(new)
                    if f'{LIST}.' in name and not name.startswith(neutral)
                    ][:1]
    memory = getattr(model, MEMORY, None)
    if cfg.get(MEMORY, 'same') != 'same' or (
            isinstance(memory, PositionEncodingList) and memory.encodings):
        reasons.append("the decoder's keys have another encoding")
    return reasons


def _same(own: dict, theirs: dict, partial: bool) -> bool:
    """Whether an item is the source's; with ``partial``, as far as that's
    arguments are known. A type of the source is looked for in mmpe only: to
    look elsewhere would import what a file names."""
    cls = check_items([own])[0]
    kind = theirs.get('type') if isinstance(theirs, Mapping) else None
    if not isinstance(kind, str) or cls is not getattr(
            position, kind.rpartition('.')[2], None):
        return False
    defaults = {
        name: p.default
        for base in reversed(cls.__mro__) if '__init__' in vars(base)
        for name, p in inspect.signature(base.__init__).parameters.items()
        if p.default is not p.empty
    }
    compared = set(theirs) if partial else {*own, *theirs}
    return not any(
        True for key in compared - _SHOWN - {'type'} for _ in differences(
            own.get(key, defaults.get(key)),
            theirs.get(key, defaults.get(key))))


# Of the published detectors, which all are 256 wide; names and shapes don't
# show it.
_USUAL = {
    'encoder.layer_cfg.self_attn_cfg.num_heads': 8,
    'decoder.layer_cfg.self_attn_cfg.num_heads': 8,
    'decoder.layer_cfg.cross_attn_cfg.num_heads': 8,
    'encoder.layer_cfg.ffn_cfg.act_cfg.type': 'ReLU',
    'decoder.layer_cfg.ffn_cfg.act_cfg.type': 'ReLU',
    'neck.act_cfg': None,
    'neck.norm_cfg.num_groups': 32,
    'data_preprocessor.mean': [123.675, 116.28, 103.53],
    'data_preprocessor.std': [58.395, 57.12, 57.375],
    'data_preprocessor.bgr_to_rgb': True,
}


def _against_usual(cfg: Mapping) -> List[str]:
    """Where a detector of the published width isn't like those."""
    if _setting(cfg, 'encoder.layer_cfg.self_attn_cfg.embed_dims') != 256:
        return []
    found = {key: _setting(cfg, key) for key in _USUAL}
    return [
        f'CONFIG has {key}={found[key]!r}, the source {usual!r}'
        for key, usual in _USUAL.items()
        if found[key] is not ... and list(
            differences(found[key], usual))
    ]


def _setting(cfg: Any, key: str) -> Any:
    """``cfg[word][word]...``; ``Ellipsis`` where it isn't said."""
    for word in key.split('.'):
        cfg = cfg.get(word, ...) if isinstance(cfg, Mapping) else ...
    return cfg


def _against_host(cfg: Mapping) -> List[str]:
    """What the rest of a model may do otherwise than its source."""
    host = host_of(cfg)
    reasons = _against_usual(cfg)
    reasons += [
        f'CONFIG has {key}={host[key]!r}'
        for key, usual in dict(join='input', window_size=None).items()
        if host.get(key, usual) not in (usual, None)
    ]
    backbone = cfg.get('backbone', {})
    if max(backbone.get('dilations', (1, ))) > 1 and not backbone.get(
            'contract_dilation'):
        reasons.append(
            "MMDetection's ResNet also dilates the first block of a stage, "
            "the official ones don't: type='mmseg.ResNet' with "
            'contract_dilation=True is as they are')
    return reasons


def _plain(value: Any) -> Any:
    """Without what changes nothing, and without our prefix."""
    if isinstance(value, Mapping):
        out: Dict[str, Any] = {
            k: _plain(v)
            for k, v in value.items()
            if k not in _APART and not k.startswith('loss')
        }
        if isinstance(out.get('type'), str):
            out['type'] = out['type'].rpartition('.')[2]
        return out
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
