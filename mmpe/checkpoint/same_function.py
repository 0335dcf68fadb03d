"""Whether an import starts as the very function of its source."""
import inspect
from typing import Any, Dict, List, Mapping, Optional, Sequence

from torch import nn

from mmpe.engine.config_text import differences
from mmpe.position import PositionEncodingList, as_items, check_items
from .family import Origin
from .fit import INITIALISED, RESIZED, Entry

# What an argument of an encoding says that its function doesn't depend on
# once it has numbers, or that shapes show.
_SHOWN = {'std', 'init', 'grid', 'num_feats', 'init_cfg', 'row_num_embed',
          'col_num_embed', 'trainable'}
# Keys of a model's config that change nothing in what its network computes,
# and those that are compared in another way.
_APART = {'init_cfg', 'train_cfg', 'test_cfg', 'positional_encoding',
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
    if origin.unknown:
        return [*reasons, origin.unknown]
    new = {e.name for e in entries if e.status == INITIALISED}
    reasons += _against_encodings(model, cfg, origin.items, new)
    if source is None:
        reasons += _against_host(cfg)
    else:
        reasons += [
            f'CONFIG has another model.{key} than the source'
            for key, _, _ in differences(_plain(source), _plain(cfg))
        ][:3]
    return reasons


def host_of(cfg: Mapping) -> Mapping:
    """The part of a model's config that has the list of encodings."""
    if 'positional_encoding' in cfg:
        return cfg
    backbone = cfg.get('backbone', cfg)
    return backbone if isinstance(backbone, Mapping) else cfg


def _against_encodings(model: nn.Module, cfg: Mapping,
                       theirs: Sequence[dict], new: set) -> List[str]:
    lists = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, PositionEncodingList)
    }
    main = next((name for name in lists
                 if name.split('.')[-1] == 'positional_encoding'), None)
    default = [dict(type='mmpe.PositionEmbedding')] if main else []
    items = as_items(host_of(cfg).get('positional_encoding', default))
    reasons, rest = [], list(theirs)
    encodings = lists[main].encodings if main else []
    aligned = len(encodings) == len(items)
    for k, item in enumerate(items):
        match = next((t for t in rest if _same(item, t)), None)
        kind = str(item['type'])
        if match is not None:
            rest.remove(match)
        elif not (aligned and encodings[k].changes_nothing):
            reasons.append(f'{kind} is new')
    reasons += [f"CONFIG has no {item['type']} such as the source's"
                for item in rest]
    neutral = tuple(f'{name}.' for name, e in model.named_modules()
                    if getattr(e, 'changes_nothing', False))
    if not reasons:
        reasons += [f'{name} is new' for name in sorted(new)
                    if 'positional_encoding.' in name
                    and not name.startswith(neutral)][:1]
    memory = cfg.get('memory_positional_encoding', 'same')
    if memory != 'same' or 'memory_positional_encoding' in lists and lists[
            'memory_positional_encoding'].encodings:
        reasons.append("the decoder's keys have another encoding")
    return reasons


def _same(own: dict, theirs: dict) -> bool:
    """Whether an item is what is known of the source's."""
    (cls, other), defaults = check_items([own, theirs]), {}
    if cls is not other:
        return False
    defaults = {
        name: p.default
        for base in reversed(cls.__mro__) if '__init__' in vars(base)
        for name, p in inspect.signature(base.__init__).parameters.items()
        if p.default is not p.empty
    }
    # iRPE's map and ratio are not in the files of others.
    compared = set(theirs) if theirs.get(
        'type') == 'mmpe.ImageRPE' else {*own, *theirs}
    return all(
        own.get(key, defaults.get(key)) == theirs.get(key, defaults.get(key))
        for key in compared - _SHOWN - {'type'})


def _against_host(cfg: Mapping) -> List[str]:
    """What the rest of a model may do otherwise than its source."""
    host = host_of(cfg)
    reasons = [
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
