"""COCO's average precision for any weights of the images.

A resample of images is a weight for each: how often it was drawn. The numbers
are those that pycocotools gives for a data set in which each image is there
that many times; but for equal scores in one image, whose copies would come in
turns there.
"""
from dataclasses import dataclass
from typing import Callable, Dict, Optional

import numpy as np

from .matching import SIZES, THRESHOLDS, ClassMatches, Matches

RECALLS = np.linspace(0, 1, 101)
METRICS = ('AP', 'AP50', 'AP75', 'APS', 'APM', 'APL', 'AR100')


@dataclass(frozen=True)
class Precisions:
    """Average precisions of B weightings and K classes, from 0 to 1; nan
    where there is no object that counts.

    Args:
        by_class (dict[str, ndarray]): Of each of ``METRICS``, ``(B, K)``.
        by_threshold (ndarray): Of each threshold of overlap, ``(B, K, T)``.
    """
    by_class: Dict[str, np.ndarray]
    by_threshold: np.ndarray

    def mean(self, metric: str) -> np.ndarray:
        """Over the classes that have objects, ``(B, )``; nan if none has."""
        return mean_of_classes(self.by_class[metric])


def mean_of_classes(values: np.ndarray) -> np.ndarray:
    """``(B, K, ...)`` to ``(B, ...)``, without those that are nan."""
    there = ~np.isnan(values)
    count = there.sum(1)
    total = np.where(there, values, 0).sum(1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def average_precisions(matches: Matches,
                       weights: Optional[np.ndarray] = None,
                       batch: int = 64,
                       progress: Callable[[int], None] = lambda n: None
                       ) -> Precisions:
    """Average precisions of all classes.

    Args:
        matches (Matches): Of a run.
        weights (ndarray, optional): How often each image counts, ``(B,
            images)``. Defaults to once.
        batch (int): How many weightings are computed at a time; more need
            more memory. Defaults to 32.
        threads (int): Defaults to 1.
        progress (Callable): Is told how many weightings are done.
    """
    if weights is None:
        weights = np.ones((1, matches.num_images))
    rows, classes = len(weights), len(matches.classes)
    kind = np.float64 if rows == 1 else np.float32
    out = np.full((rows, classes, len(SIZES), len(THRESHOLDS)), np.nan, kind)
    recall = np.full((rows, classes, len(THRESHOLDS)), np.nan, kind)

    for start in range(0, rows, batch):
        part = slice(start, start + batch)
        drawn = weights[part].astype(kind)
        for k, own in enumerate(matches.classes):
            _class_precisions(own, drawn, out[part, k], recall[part, k])
        progress(len(drawn))
    means = out.mean(-1)
    by_class = dict(
        AP=means[..., 0],
        AP50=out[:, :, 0, 0],
        AP75=out[:, :, 0, 5],
        APS=means[..., 1],
        APM=means[..., 2],
        APL=means[..., 3],
        AR100=recall.mean(-1))
    return Precisions(by_class, out[:, :, 0])


def _class_precisions(c: ClassMatches, weights: np.ndarray,
                      out: np.ndarray, recall: np.ndarray) -> None:
    """Fill ``out`` ``(B, S, T)`` and ``recall`` ``(B, T)`` of a class."""
    of_objects = weights[:, c.object_image]
    if len(c.rank):
        until = c.rank[-1] + 1
        each = weights[:, c.image[:until]]
        starts = np.r_[0, c.rank[:-1] + 1]
        matched = each[:, c.rank]
    for s in range(len(SIZES)):
        positives = of_objects[:, c.object_counts[s]].sum(1)
        there = positives > 0
        if not there.any():
            continue
        out[there, s] = 0
        if s == 0:
            recall[there] = 0
        if not len(c.rank) or not c.found[s].any():
            continue
        # How many detections of this size have at least the score of each
        # matched one, matched or not.
        inside = c.inside[s, :until]
        counted = each if inside.all() else each * inside
        until_here = np.cumsum(np.add.reduceat(counted, starts, axis=1), 1)
        inside = inside[c.rank]
        for t in range(len(THRESHOLDS)):
            found = np.flatnonzero(c.found[s, t])
            if not len(found):
                continue
            no_false = inside & (c.found[s, t] | c.ignored[s, t])
            true = np.cumsum(matched[:, found], 1)
            false = until_here[:, found] - np.cumsum(
                matched * no_false, 1)[:, found]
            precision = true / np.maximum(true + false, 1e-9)
            # The highest precision at this recall or more.
            precision = np.maximum.accumulate(precision[:, ::-1], 1)[:, ::-1]
            # In double precision: thresholds such as 0.01 are met exactly.
            reached = np.divide(
                true, np.maximum(positives, 1e-9)[:, None], dtype=float)
            passed = np.searchsorted(RECALLS, reached, 'right')
            new = np.diff(passed, axis=1, prepend=0)
            value = (precision * new).sum(1) / len(RECALLS)
            out[there, s, t] = value[there]
            if s == 0:
                recall[there, t] = reached[there, -1]
