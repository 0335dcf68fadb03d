"""What a config says of the data that it is tested on."""
import os
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Tuple

from mmengine.registry import DATASETS

from mmpe.engine.usage_error import UsageError

_WRAPPED = 'dataset'  # what RepeatDataset and others call what they wrap


def setting(cfg: Any, *keys: str) -> Any:
    """``cfg[key][key]...``; None where a key is missing."""
    for key in keys:
        cfg = cfg.get(key) if hasattr(cfg, 'get') else None
    return cfg


def dataset_of(cfg: Any, loader: str = 'test_dataloader') -> Mapping:
    """The config of a data set, without what wraps it; empty if there is
    none."""
    dataset = setting(cfg, loader, 'dataset')
    while isinstance(dataset, Mapping) and isinstance(
            dataset.get(_WRAPPED), Mapping):
        dataset = dataset[_WRAPPED]
    return dataset if isinstance(dataset, Mapping) else {}


def pipeline_of(cfg: Any) -> Tuple[Mapping, ...]:
    """The transforms of the test."""
    steps = dataset_of(cfg).get('pipeline')
    steps = steps if isinstance(steps, (list, tuple)) else ()
    return tuple(step for step in steps if isinstance(step, Mapping))


def joined(dataset: Mapping, name: Any) -> Optional[str]:
    """A path of a data set, under its root."""
    if not isinstance(name, str):
        return None
    return os.path.join(dataset.get('data_root') or '', name)


def annotation_file(work_dir: Path, cfg: Any, given: Optional[str]) -> Path:
    """The annotation file of a test.

    Args:
        work_dir (Path): Of the run.
        cfg (Config, optional): Of the test.
        given (str, optional): The one of ``--ann``, which goes first.

    Raises:
        UsageError: If there is none.
    """
    if given is not None:
        return Path(given)
    evaluators = setting(cfg, 'test_evaluator')
    if not isinstance(evaluators, (list, tuple)):
        evaluators = [evaluators]
    names = [setting(e, 'ann_file') for e in evaluators
             if str(setting(e, 'type')).endswith('CocoMetric')]
    dataset = dataset_of(cfg)
    names.append(joined(dataset, dataset.get('ann_file')))
    name = next((n for n in names if isinstance(n, str)), None)
    if name is None:
        raise UsageError(f'{work_dir}: its config names no annotation file; '
                         'say with --ann which one')
    found = _find(work_dir, cfg, name)
    if found is None or not found.is_file():
        raise UsageError(f'{work_dir}: no such annotation file: {name}; say '
                         'with --ann where it is')
    return found


def images_folder(work_dir: Path, cfg: Any) -> Optional[Path]:
    """Where the images of a test are, if they are there."""
    dataset = dataset_of(cfg)
    prefix = setting(dataset, 'data_prefix', 'img')
    name = joined(dataset, '' if prefix is None else prefix)
    found = _find(work_dir, cfg, name) if name else None
    return found if found is not None and found.is_dir() else None


def _find(work_dir: Path, cfg: Any, name: str) -> Optional[Path]:
    return next(
        (p for p in _places(work_dir, cfg, name) if p.exists()), None)


def _places(work_dir: Path, cfg: Any, name: str) -> Iterator[Path]:
    """Here, and where the run was started."""
    yield Path(name)
    stated, actual = setting(cfg, 'work_dir'), work_dir.resolve()
    if isinstance(stated, str) and not os.path.isabs(stated):
        parts = Path(os.path.normpath(stated)).parts
        if actual.parts[-len(parts):] == parts:
            yield Path(*actual.parts[:-len(parts)], name)


def class_names(cfg: Any) -> Optional[Tuple[str, ...]]:
    """Names of the classes of a test, in the model's order."""
    dataset = dataset_of(cfg)
    classes = setting(dataset, 'metainfo', 'classes')
    if classes is None and isinstance(dataset.get('type'), str):
        scope = setting(cfg, 'default_scope') or 'mmdet'
        with DATASETS.switch_scope_and_registry(scope) as registry:
            cls = registry.get(dataset['type'])
        classes = getattr(cls, 'METAINFO', {}).get('classes')
    if isinstance(classes, str):  # one class, as MMDetection allows it
        classes = (classes, )
    return tuple(classes) if isinstance(classes, (list, tuple)) else None
