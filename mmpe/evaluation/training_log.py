"""What the logs of a training say: losses, validations, time, memory."""
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .work_dir import training_sessions


@dataclass(frozen=True)
class LossPoint:
    """A loss, as it was logged: a mean over the last iterations.

    Args:
        step (int): Iterations done.
        epoch (float, optional): Epochs done; None where training goes by
            iterations.
        loss (float): Their sum.
    """
    step: int
    epoch: Optional[float]
    loss: float


@dataclass(frozen=True)
class Validation:
    """One evaluation during a training.

    Args:
        step (int): Iterations done before it.
        epoch (int, optional): Epochs done before it.
        metrics (dict[str, float]): Without those that are not finite.
    """
    step: int
    epoch: Optional[int]
    metrics: Dict[str, float]

    def ap(self, kind: str = 'bbox') -> Optional[float]:
        """AP of ``'bbox'`` or ``'segm'``; None if it wasn't taken, or the
        ground truth has nothing to find."""
        values = [value for name, value in self.metrics.items()
                  if name.rpartition('/')[2] == f'{kind}_mAP']
        return values[0] if values and values[0] >= 0 else None


@dataclass(frozen=True)
class TrainingLog:
    """The newest training of a work dir, however often it was resumed.

    Args:
        losses (list[LossPoint]): The finite ones, by step.
        validations (list[Validation]): By step.
        seconds_per_iteration (float, optional): The median.
        memory (float, optional): The most that was logged, in MB; None
            without a GPU.
        not_finite (list[int]): Steps at which the loss was not finite.
    """
    losses: List[LossPoint] = field(default_factory=list)
    validations: List[Validation] = field(default_factory=list)
    seconds_per_iteration: Optional[float] = None
    memory: Optional[float] = None
    not_finite: List[int] = field(default_factory=list)

    def epochs_to_reach(self, ap: float, kind: str = 'bbox') -> Optional[int]:
        """The first validated epoch with at least this AP (0 to 1); None if
        there is none."""
        return next((v.epoch for v in self.validations
                     if (v.ap(kind) or 0.) >= ap), None)


def read_training_log(work_dir: Path) -> TrainingLog:
    """Read the ``scalars.json`` of all sessions of a training.

    A session that resumed repeats steps after its checkpoint: the later one
    counts. Lines that are cut off or no JSON are left out.
    """
    train: Dict[int, Dict[str, Any]] = {}
    validated: List[Tuple[int, Dict[str, Any]]] = []
    done = 0
    for session in training_sessions(work_dir):
        for line in _lines(session.scalars):
            step = line.get('step')
            if not _is_number(step):
                continue
            if 'loss' in line:
                done = int(step)
                train[done] = line
            else:
                validated.append((done, line))
    length = _epoch_length(train)
    points = [_validation(done, line, length) for done, line in validated]
    return TrainingLog(
        losses=[
            LossPoint(step, step / length if length else None, line['loss'])
            for step, line in sorted(train.items()) if _is_finite(line['loss'])
        ],
        validations=sorted({v.step: v for v in points}.values(),
                           key=lambda v: v.step),
        seconds_per_iteration=_statistic(median, train, 'time'),
        memory=_statistic(max, train, 'memory'),
        not_finite=[
            step for step, line in sorted(train.items())
            if not _is_finite(line['loss'])
        ])


def _lines(path: Path) -> Iterator[Dict[str, Any]]:
    with path.open(errors='replace') as file:
        for text in file:
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(line, dict):
                yield line


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _epoch_length(train: Dict[int, Dict[str, Any]]) -> Optional[float]:
    """Iterations of an epoch: exact if the last one of any was logged, else
    a little less."""
    return max((step / line['epoch'] for step, line in train.items()
                if _is_number(line.get('epoch')) and line['epoch'] > 0),
               default=None)


def _validation(done: int, line: Dict[str, Any],
                length: Optional[float]) -> Validation:
    """A line after ``done`` iterations. MMEngine's step of a validation is
    the epoch or, with ``log_metric_by_epoch=False``, the iteration."""
    metrics = {name: value for name, value in line.items()
               if _is_finite(value) and name not in _OTHER}
    if length is None:
        return Validation(done, None, metrics)
    step = int(line['step'])
    is_epoch = not done or step <= done / length + 1
    epoch = step if is_epoch else round(step / length)
    return Validation(round(epoch * length), epoch, metrics)


_OTHER = ('step', 'done', 'time', 'data_time', 'epoch', 'iter', 'memory')


def _statistic(function: Any, train: Dict[int, Dict[str, Any]],
               name: str) -> Optional[float]:
    values = [line[name] for line in train.values()
              if _is_finite(line.get(name))]
    return function(values) if values else None
