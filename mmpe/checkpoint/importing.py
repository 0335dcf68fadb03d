"""Importing a checkpoint into a model of mmpe."""
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import DATASETS, MODELS, init_default_scope
from torch import nn

from mmpe import __version__
from mmpe.engine.check_checkpoint import Untrusted, read_checkpoint
from mmpe.engine.check_config import config_errors
from mmpe.engine.usage_error import UsageError
from mmpe.engine.whole_files import part_of, write_whole
from mmpe.position import PositionEmbedding
from .families import recognise
from .family import Origin
from .fit import fit
from .openmmlab import OPENMMLAB, model_of, origin_of
from .report import Report
from .rules import rename
from .same_function import reasons_against
from .sources import Source
from .unwrap import find_tensors


UNSEEN = 'what names and shapes do not show, such as heads, is as in CONFIG'


def build_model(cfg: Config) -> nn.Module:
    """The model of a config with the values that training would begin with,
    but without downloading any. The same ones each time.

    Raises:
        UsageError: If it can't be built.
    """
    init_default_scope(cfg.get('default_scope') or 'mmdet')
    model_cfg = _without_downloads(cfg.model)
    if 'data_preprocessor' in cfg:
        model_cfg.setdefault('data_preprocessor', cfg.data_preprocessor)
    torch.manual_seed(0)
    with config_errors(cfg):
        model = MODELS.build(model_cfg)
    if hasattr(model, 'init_weights'):
        model.init_weights()
    return model.eval()


def import_checkpoint(cfg: Config,
                      source: Source,
                      model: Optional[nn.Module] = None,
                      family: Optional[str] = None,
                      grid: Optional[Tuple[int, int]] = None,
                      trust: bool = False
                      ) -> Tuple[Dict[str, Any], Report, Origin]:
    """Make a checkpoint of a config's model from one of a known family.

    Args:
        cfg (Config): Of the model.
        source (Source): The checkpoint.
        model (nn.Module, optional): What :func:`build_model` gives.
        family (str, optional): Name of the family. Defaults to the one that
            its names tell.
        grid (tuple[int, int], optional): Height and width in cells of the
            checkpoint's learned table, where that doesn't tell. Defaults to
            a square.
        trust (bool): Whether the file may run code. Defaults to False.

    Returns:
        tuple[dict, Report, Origin]: A checkpoint as MMEngine has it, an
        account, and the source's encodings.

    Raises:
        UsageError: If the checkpoint can't be read, or is of no known family
            or of another model.
    """
    path = str(source.path)
    try:
        content = read_checkpoint(path, trust)
    except Untrusted as error:
        raise UsageError(f'{error}. If you know who made it, --trust loads '
                         'it all the same') from error
    tensors, container = find_tensors(path, content)
    model = build_model(cfg) if model is None else model
    known = set(model.state_dict())
    found, weights = recognise(path, tensors, known, family)
    try:
        renamed, left = rename(weights, found.rules, known, _host(model))
        _set_grid(model, renamed, grid)
    except ValueError as error:
        raise UsageError(f'{path}: {error}') from error
    state, entries = fit(path, model, renamed, left)
    model.load_state_dict(state, assign=True)  # without a copy
    meta = content.get('meta') if isinstance(content, Mapping) else None
    theirs = model_of(meta) if found is OPENMMLAB else None
    origin = found.origin(weights)
    if found is OPENMMLAB:
        origin = origin_of(theirs, str(cfg.model.get('type')))
    report = Report(
        config=str(cfg.filename),
        source=path,
        url=source.url,
        family=found.title,
        container=container,
        entries=entries,
        reasons=reasons_against(model, cfg.model, origin, entries, theirs),
        assumed=[*origin.assumed, *([] if theirs else [UNSEEN])])
    out = dict(
        meta=dict(
            mmpe_version=__version__,
            cfg=_as_text(cfg),
            dataset_meta=_dataset_meta(cfg, meta),
            imported_from=source.url or source.path.name,
            family=found.title),
        state_dict=state)
    return out, report, origin


def save(checkpoint: Dict[str, Any], path: Path) -> None:
    """Write a checkpoint, whole or not at all.

    Raises:
        UsageError: If the disk refuses it.
    """
    try:
        with _without_checksums():
            write_whole(path, lambda part: torch.save(checkpoint, part))
    except (OSError, RuntimeError) as error:  # torch's, of a full disk
        part_of(path).unlink(missing_ok=True)
        raise UsageError(f'cannot write {path}: {error}') from error


@contextmanager
def _without_checksums() -> Iterator[None]:
    """torch doesn't look at them when it loads, and they take a quarter of
    the time of saving. Before 2.6 it can't leave them out."""
    options = torch.serialization
    if not hasattr(options, 'set_crc32_options'):
        yield
        return
    before = options.get_crc32_options()
    options.set_crc32_options(False)
    try:
        yield
    finally:
        options.set_crc32_options(before)


def _without_downloads(cfg: Any) -> Any:
    """A copy without checkpoints that initialising would load."""
    if isinstance(cfg, Mapping):
        return ConfigDict({
            k: None if k == 'init_cfg' and _is_pretrained(v) else
            _without_downloads(v)
            for k, v in cfg.items()
        })
    if isinstance(cfg, (list, tuple)):
        return type(cfg)(_without_downloads(item) for item in cfg)
    return cfg


def _is_pretrained(init_cfg: Any) -> bool:
    items = init_cfg if isinstance(init_cfg, (list, tuple)) else [init_cfg]
    return any(isinstance(item, Mapping) and item.get('type') == 'Pretrained'
               for item in items)


def _host(model: nn.Module) -> str:
    """What names of the backbone begin with: nothing, if it is the model."""
    return 'backbone.' if hasattr(model, 'backbone') else ''


def _set_grid(model: nn.Module, renamed: Dict[str, Any],
              grid: Optional[Tuple[int, int]]) -> None:
    """Give a flat table the grid that the user says it has."""
    if grid is None:
        return
    for name, module in model.named_modules():
        item = renamed.get(f'{name}.weight')
        if not isinstance(module, PositionEmbedding) or item is None:
            continue
        table, first = item.tensor, module.num_prefix
        cells = len(table) - first
        if table.dim() != 2 or cells != grid[0] * grid[1]:
            raise ValueError(
                f'{item.sources[0]} has the shape {tuple(table.shape)}, which '
                f'is not {first} prefix tokens and a grid of {grid[0]}x'
                f'{grid[1]}')
        renamed[f'{name}.weight'] = item._replace(
            tensor=table[first:].unflatten(0, grid))
        if first:
            renamed[f'{name}.prefix'] = item._replace(tensor=table[:first])
        return
    raise ValueError('--source-grid is for a learned table, and CONFIG has '
                     'none that the checkpoint has, too')


def _as_text(cfg: Config) -> str:
    """The settings as a config that can be read; pretty is slow."""
    return '\n'.join(f'{key} = {value!r}'
                     for key, value in cfg.to_dict().items())


def _dataset_meta(cfg: Config, meta: Any) -> Dict[str, Any]:
    """Names of the classes, for those who show predictions: the source's, or
    those of the config's data set."""
    if isinstance(meta, Mapping) and isinstance(
            meta.get('dataset_meta'), Mapping):
        return dict(meta['dataset_meta'])
    dataset = cfg.get('test_dataloader', {}).get('dataset', {})
    kind = dataset.get('type')
    with DATASETS.switch_scope_and_registry(None) as registry:
        cls = registry.get(kind) if isinstance(kind, str) else None
    return {
        **dict(getattr(cls, 'METAINFO', {})),
        **dict(dataset.get('metainfo') or {})
    }
