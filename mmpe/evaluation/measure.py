"""The numbers of runs, each read and matched once."""
from dataclasses import dataclass
from functools import cached_property
from typing import Callable, List, Optional, Sequence, Tuple

import numpy as np

from .average_precision import (METRICS, RECALLS, Precisions,
                                average_precisions)
from .compare import Difference, difference
from .detections import Detections
from .errors import Errors, split_errors
from .matching import THRESHOLDS, Matches, match
from .objects import Objects
from .places import found


@dataclass(frozen=True, eq=False)
class Measured:
    """A run's detections of one kind, compared with the ground truth.

    Args:
        name (str): Of the run.
        objects (Objects): The ground truth.
        detections (Detections): The run's.
        matches (Matches): Of both.
        plain (Precisions): Of the images as they are.
        drawn (Precisions): Of the resampled images.
    """
    name: str
    objects: Objects
    detections: Detections
    matches: Matches
    plain: Precisions
    drawn: Precisions

    @cached_property
    def errors(self) -> Errors:
        return split_errors(self.objects, self.detections, self.matches)

    @cached_property
    def found(self) -> np.ndarray:
        return found(self.matches, len(self.objects.image))

    @cached_property
    def cut(self) -> float:
        """The score that as many detections have as there are objects."""
        scores = np.sort(self.detections.score)[::-1]
        number = int((~self.objects.crowd).sum())
        return float(scores[number - 1]) if 0 < number <= len(scores) else 0.

    def precision_curve(self, threshold: float) -> np.ndarray:
        """Highest precision at each of 101 recalls or more, the mean over the
        classes that have objects."""
        t = int(np.argmin(abs(THRESHOLDS - threshold)))
        curves = []
        for c in self.matches.classes:
            positives = int(c.object_counts[0].sum())
            if not positives:
                continue
            right = np.zeros(len(c.score), bool)
            counts = np.ones(len(c.score), bool)
            right[c.rank] = c.found[0, t]
            counts[c.rank[c.ignored[0, t]]] = False
            true = np.cumsum(right[counts])
            precision = true / np.arange(1, len(true) + 1)
            precision = np.maximum.accumulate(precision[::-1])[::-1]
            place = np.searchsorted(true / positives, RECALLS)
            curves.append(np.r_[precision, 0][place])
        return np.mean(curves, axis=0) if curves else np.zeros(len(RECALLS))

    @cached_property
    def quality(self) -> np.ndarray:
        """F1 of each image at an overlap of 0.5 of the detections that the
        cut leaves; nan where there is nothing to find and nothing found."""
        n = len(self.objects.image_ids)
        right, made = np.zeros(n), np.zeros(n)
        for c in self.matches.classes:
            above = c.score >= self.cut
            hits = np.zeros(len(c.score), bool)
            hits[c.rank] = c.found[0, 0]
            right += np.bincount(c.image[above & hits], minlength=n)
            made += np.bincount(c.image[above], minlength=n)
        wanted = np.bincount(
            self.objects.image[~self.objects.crowd], minlength=n)
        total = made + wanted
        return np.where(total > 0, 2 * right / np.maximum(total, 1), np.nan)


def measure(name: str,
            objects: Objects,
            detections: Detections,
            weights: np.ndarray,
            progress: Callable[[int], None] = lambda n: None) -> Measured:
    """Compare a run's detections with the ground truth.

    Args:
        name (str): Of the run.
        objects (Objects): The ground truth.
        detections (Detections): The run's.
        weights (ndarray): Of the resampled images, ``(B, images)``.
        progress (Callable): Is told how many resamples are done.
    """
    matches = match(objects, detections)
    return Measured(name, objects, detections, matches,
                    average_precisions(matches),
                    average_precisions(matches, weights, progress=progress))


class MeasuredMethod:
    """Runs that differ in their seeds alone.

    Args:
        name (str): Of the method.
        runs (Sequence[Measured]): At least one.
        copies (Sequence[Measured]): Runs that found the very same as one of
            these, which don't count. Defaults to none.
    """

    def __init__(self,
                 name: str,
                 runs: Sequence[Measured],
                 copies: Sequence[Measured] = ()) -> None:
        self.name = name
        self.runs = list(runs)
        self.all_runs = [*runs, *copies]

    def values(self, metric: str) -> Tuple[np.ndarray, np.ndarray]:
        """In points: of each run, ``(runs, )``, and in each resample of the
        images, ``(runs, B)``."""
        return self.of(lambda p: p.mean(metric))

    def of(self, number: Callable[[Precisions], np.ndarray]
           ) -> Tuple[np.ndarray, np.ndarray]:
        """Any number of precisions, ``(B, ...)``, as :meth:`values`."""
        return (np.stack([100 * number(r.plain)[0] for r in self.runs]),
                np.stack([100 * number(r.drawn) for r in self.runs]))


def against(own: MeasuredMethod, base: Optional[MeasuredMethod],
            number: Callable[[Precisions], np.ndarray],
            num_images: int) -> List[Optional[Difference]]:
    """Differences of a number that there are several of, or a method's own
    numbers, if there is no baseline.

    Args:
        own (MeasuredMethod): The method.
        base (MeasuredMethod, optional): The baseline.
        number (Callable): From precisions to ``(B, K)``.
        num_images (int): Of the data set.
    """
    values, drawn = own.of(number)
    theirs = (np.zeros_like(values), np.zeros_like(drawn)
              ) if base is None else base.of(number)
    return [
        difference(values[:, k], drawn[:, :, k], theirs[0][:, k],
                   theirs[1][:, :, k], num_images)
        for k in range(values.shape[1])
    ]


def all_metrics(precisions: Precisions) -> np.ndarray:
    """``METRICS``, ``(B, metrics)``."""
    return np.stack([precisions.mean(m) for m in METRICS], 1)
