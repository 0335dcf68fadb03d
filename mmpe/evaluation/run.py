"""A run: what a report reads of one training and its test."""
import json
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mmengine.config import Config

from mmpe.engine.usage_error import UsageError
from .tested_data import (annotation_file, class_names, images_folder,
                          setting)
from .work_dir import (newest_config_name, sessions, tested_config,
                       training_sessions)

KINDS = ('bbox', 'segm')


@dataclass(frozen=True, eq=False)
class Run:
    """What is known of a run. What isn't is None or empty.

    Args:
        name (str): Told apart from those of other runs.
        path (Path): The work dir, or the file of predictions.
        predictions (dict[str, Path]): By ``'bbox'`` and ``'segm'``.
        ann_file (Path): The ground truth.
        images_dir (Path, optional): Where the images are.
        cfg (Config, optional): With which it was tested.
        train_cfg (Config, optional): With which it was trained.
        config (str, optional): Name of the config, without ``.py``.
        metrics (dict[str, Any]): Content of ``metrics.json``.
        classes (tuple[str], optional): Of the data set, in its order.
        seed (int, optional): Of the training.
        epochs (int, optional): Of the training, as planned.
        load_from (str, optional): Checkpoint that the training began with.
        checkpoint (str, optional): What was tested.
        checkpoint_kind (str, optional): ``'best'``, ``'last'``, or
            ``'epoch 3'`` for one in between;
            ``'iter 3'`` where training goes by iterations.
        checkpoint_epoch (int, optional): Its number.
        versions (dict[str, str]): Of the software that tested, and the GPU.
        train_versions (dict[str, str]): Of the software that trained.
        processes (int, optional): That trained.
        label (str, optional): The name that a file was given; those of one
            name are seeds of one method.
    """
    name: str
    path: Path
    predictions: Dict[str, Path]
    ann_file: Path
    images_dir: Optional[Path] = None
    cfg: Optional[Config] = None
    train_cfg: Optional[Config] = None
    config: Optional[str] = None
    metrics: Dict[str, Any] = field(default_factory=dict)
    classes: Optional[Tuple[str, ...]] = None
    seed: Optional[int] = None
    epochs: Optional[int] = None
    load_from: Optional[str] = None
    checkpoint: Optional[str] = None
    checkpoint_kind: Optional[str] = None
    checkpoint_epoch: Optional[int] = None
    versions: Dict[str, str] = field(default_factory=dict)
    train_versions: Dict[str, str] = field(default_factory=dict)
    processes: Optional[int] = None
    label: Optional[str] = None

    @property
    def any_cfg(self) -> Optional[Config]:
        """The config of the training or, without one, of the test."""
        return self.cfg if self.train_cfg is None else self.train_cfg


def read_runs(texts: Sequence[str], ann: Optional[str] = None) -> List[Run]:
    """Read all runs and make their names unique.

    Args:
        texts (Sequence[str]): As :func:`read_run` takes them.
        ann (str, optional): An annotation file for all.

    Raises:
        UsageError: As :func:`read_run`, or if one is given twice.
    """
    runs = [read_run(text, ann) for text in texts]
    for path, count in Counter(run.path.resolve() for run in runs).items():
        named = [run for run in runs if run.path.resolve() == path]
        labels = Counter(run.label for run in named)
        if max(labels.values()) > 1:
            raise UsageError(f'{named[0].path} is given {count} times; as two '
                             'runs it would count as two seeds')
    depth = 1
    while depth < _longest(runs):
        # Seeds are often kept in folders of one name.
        depth += 1
        counts = Counter(run.name for run in runs)
        runs = [
            replace(run, name='/'.join(run.path.resolve().parts[-depth:]))
            if counts[run.name] > 1 and run.path.is_dir() else run
            for run in runs
        ]
    counts, numbers = Counter(run.name for run in runs), Counter()
    for i, run in enumerate(runs):
        if counts[run.name] > 1:  # files under one name are seeds
            numbers[run.name] += 1
            runs[i] = replace(run, name=f'{run.name} {numbers[run.name]}')
    return runs


def _longest(runs: Sequence[Run]) -> int:
    return max((len(run.path.resolve().parts) for run in runs), default=0)


def read_run(text: str, ann: Optional[str] = None) -> Run:
    """Read what a run left behind.

    Args:
        text (str): A work dir, or ``name=predictions.bbox.json``.
        ann (str, optional): The annotation file, rather than the config's.

    Raises:
        UsageError: If there are no predictions or annotations.
    """
    if ann is not None and not Path(ann).is_file():
        raise UsageError(f'no such annotation file: {ann}')
    path = Path(text)
    if path.is_dir():
        return _read_work_dir(path, ann)
    name, equals, file = text.partition('=')
    if not equals and path.is_file():
        raise UsageError(f'a file of predictions needs a name: NAME={text}')
    if not equals:
        raise UsageError(f'no such work dir: {text}')
    if not name or not Path(file).is_file():
        raise UsageError(f'{text}: no such file of predictions: {file!r}'
                         if name else f'no name before the = in {text}')
    if ann is None:
        raise UsageError(f'{text} comes without a config: say with --ann '
                         'which annotation file it is about')
    return Run(name, Path(file), _beside(Path(file)), Path(ann), label=name)


def _beside(file: Path) -> Dict[str, Path]:
    """A file of predictions and that of the other kind."""
    stem = re.sub(r'\.(bbox|segm)\.json$', '', file.name)
    if stem == file.name:
        return dict(bbox=file)
    files = {kind: file.with_name(f'{stem}.{kind}.json') for kind in KINDS}
    return {kind: path for kind, path in files.items() if path.is_file()}


def _read_work_dir(path: Path, ann: Optional[str]) -> Run:
    metrics = _read_metrics(path / 'metrics.json')
    cfg = tested_config(path, metrics.get('config'))
    trained = training_sessions(path)
    cfgs = [session.cfg for session in trained]
    train_cfg = cfgs[-1] if cfgs else None
    planned = cfg if train_cfg is None else train_cfg
    files = {kind: path / f'predictions.{kind}.json' for kind in KINDS}
    files = {kind: file for kind, file in files.items() if file.is_file()}
    if not files:
        raise UsageError(
            f'{path} has no predictions.bbox.json: test it first, with '
            'python tools/test.py CONFIG CHECKPOINT '
            f'--work-dir {shlex.quote(str(path))}')
    ran = sessions(path)
    train_log = trained[-1].environment if trained else {}
    checkpoint = _text(metrics.get('checkpoint'))
    kind, number = _which(checkpoint, planned)
    return Run(
        name=path.name or path.resolve().name,
        path=path,
        predictions=files,
        ann_file=annotation_file(path, cfg, ann),
        images_dir=images_folder(path, cfg),
        cfg=cfg,
        train_cfg=train_cfg,
        config=_text(metrics.get('config')) or newest_config_name(path),
        metrics=metrics,
        classes=class_names(cfg),
        seed=_number(setting(planned, 'randomness', 'seed'),
                     train_log.get('seed')),
        epochs=_number(setting(planned, 'train_cfg', 'max_epochs')),
        load_from=_began_with(cfgs),
        checkpoint=checkpoint,
        checkpoint_kind=kind,
        checkpoint_epoch=number,
        versions=_versions(ran[-1].environment if ran else {}),
        train_versions=_versions(train_log),
        processes=_number(train_log.get('processes')))


def _read_metrics(path: Path) -> Dict[str, Any]:
    try:
        metrics = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return metrics if isinstance(metrics, dict) else {}


def _text(value: Any) -> Optional[str]:
    return value if isinstance(value, str) else None


def _number(*values: Any) -> Optional[int]:
    """The first that is a whole number, or the text of one."""
    return next((int(v) for v in values if isinstance(v, (int, str))
                 and str(v).isdigit()), None)


def _versions(environment: Dict[str, str]) -> Dict[str, str]:
    return {k: v for k, v in environment.items()
            if k not in ('seed', 'processes')}


def _began_with(cfgs: Sequence[Optional[Config]]) -> Optional[str]:
    """The checkpoint of another run that a training began with."""
    first = cfgs[0] if cfgs else None
    # A resumed run has a checkpoint of its own there.
    return None if setting(first, 'resume') else _text(
        setting(first, 'load_from'))


def _which(checkpoint: Optional[str],
           cfg: Optional[Config]) -> Tuple[Optional[str], Optional[int]]:
    """Which of its training a checkpoint is, and its number."""
    named = re.fullmatch(r'(best_.*_)?(epoch|iter)_(\d+)\.pth',
                         Path(checkpoint or '').name)
    if not named:
        return None, None
    best, unit, number = named[1], named[2], int(named[3])
    if best:
        return 'best', number
    end = setting(cfg, 'train_cfg', f'max_{unit}s')
    return ('last' if number == end else f'{unit} {number}'), number
