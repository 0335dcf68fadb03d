"""What kinds of errors a run makes.

The kinds are those of `TIDE <https://arxiv.org/abs/2008.08115>`_, at an
overlap of 0.5; what its own code decides in the details isn't copied.
"""
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

import numpy as np

from .average_precision import RECALLS
from .detections import Detections
from .matching import Matches, overlaps
from .objects import Objects

KINDS = ('class', 'place', 'both', 'duplicate', 'background', 'missed')
ENOUGH, LITTLE = 0.5, 0.1
_NONE = -1


@dataclass(frozen=True)
class Errors:
    """Of a run.

    Args:
        gain (dict[str, float]): How much AP50, in points, correcting all
            errors of a kind would add.
        counts (ndarray): Errors of each kind in each image among the
            detections that the score puts first, as many as there are
            objects; objects missed by all. ``(images, kinds)``.
    """
    gain: Dict[str, float]
    counts: np.ndarray


def split_errors(objects: Objects, detections: Detections,
                 matches: Matches) -> Errors:
    """Sort the wrong detections of a run, and the objects that it misses.

    A wrong detection has the *place* wrong if it overlaps an object of its
    class by 0.1 to 0.5; the *class*, if it overlaps one of another by more
    than 0.5; *both*, if it overlaps one of another by 0.1 to 0.5. It is a
    *duplicate* if its object is found by one with a higher score, and
    *background* if it overlaps nothing by 0.1. *Missed* is an object that no
    detection is or would be if corrected.
    """
    kind, target = _kinds(objects, detections, matches)
    count = _counts(objects, detections, matches, kind, target)
    base = _ap50(objects, detections, *_flags(matches, detections))
    gain = {
        name: 100 * (_corrected(objects, detections, matches, kind, target,
                                KINDS.index(name)) - base)
        for name in KINDS
    }
    return Errors(gain, count)


def _flags(matches: Matches, detections: Detections
           ) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each detection: whether it counts, is right, and which class."""
    n = len(detections.score)
    counts, right = np.zeros(n, bool), np.zeros(n, bool)
    for c in matches.classes:
        counts[c.number] = c.inside[0]
        matched = c.number[c.rank]
        right[matched] = c.found[0, 0]
        counts[matched[c.ignored[0, 0]]] = False
    return counts, right, detections.label


def _kinds(objects: Objects, detections: Detections,
           matches: Matches) -> Tuple[np.ndarray, np.ndarray]:
    """The kind of error of each detection and the object it is about."""
    counts, right, _ = _flags(matches, detections)
    wrong = np.flatnonzero(counts & ~right)
    kind = np.full(len(detections.score), _NONE)
    target = np.full(len(detections.score), _NONE)
    kind[wrong] = KINDS.index('background')
    anns = np.flatnonzero(~objects.crowd)
    anns = anns[np.argsort(objects.image[anns], kind='stable')]
    wrong = wrong[np.argsort(detections.image[wrong], kind='stable')]
    images, starts = np.unique(detections.image[wrong], return_index=True)
    ends = np.r_[starts[1:], len(wrong)]
    lows = np.searchsorted(objects.image[anns], images, 'left')
    highs = np.searchsorted(objects.image[anns], images, 'right')
    for start, end, low, high in zip(starts, ends, lows, highs):
        if low == high:
            continue
        dets, own = wrong[start:end], anns[low:high]
        overlap = overlaps(objects, detections, dets, own)
        same = detections.label[dets][:, None] == objects.label[own]
        mine, others = np.where(same, overlap, 0), np.where(same, 0, overlap)
        best, other = mine.max(1), others.max(1)
        near, far = own[mine.argmax(1)], own[others.argmax(1)]
        # The first that holds counts.
        cases = [best >= ENOUGH, best >= LITTLE, other >= ENOUGH,
                 other >= LITTLE]
        names = ['duplicate', 'place', 'class', 'both']
        kind[dets] = np.select(cases, [KINDS.index(n) for n in names],
                               KINDS.index('background'))
        target[dets] = np.select(cases, [near, near, far, far], _NONE)
    return kind, target


def _found(matches: Matches, num_objects: int) -> np.ndarray:
    """Whether each object is found by a detection of its class."""
    out = np.zeros(num_objects, bool)
    for c in matches.classes:
        out[c.objects] = c.finder[0] >= 0
    return out


def _missed(objects: Objects, matches: Matches, kind: np.ndarray,
            target: np.ndarray) -> np.ndarray:
    """Objects that nothing is about."""
    about = np.isin(kind, [KINDS.index('place'), KINDS.index('class')])
    out = ~objects.crowd & ~_found(matches, len(objects.image))
    out[target[about]] = False
    return out


def _counts(objects: Objects, detections: Detections, matches: Matches,
            kind: np.ndarray, target: np.ndarray) -> np.ndarray:
    number = int((~objects.crowd).sum())
    first = np.argsort(-detections.score, kind='stable')[:number]
    out = np.zeros((len(objects.image_ids), len(KINDS)), int)
    first = first[kind[first] != _NONE]
    np.add.at(out, (detections.image[first], kind[first]), 1)
    missed = objects.image[_missed(objects, matches, kind, target)]
    out[:, KINDS.index('missed')] = np.bincount(missed, minlength=len(out))
    return out


def _corrected(objects: Objects, detections: Detections, matches: Matches,
               kind: np.ndarray, target: np.ndarray, which: int) -> float:
    """AP50 once the errors of a kind are no more."""
    counts, right, label = _flags(matches, detections)
    without = None
    if KINDS[which] == 'missed':
        without = _missed(objects, matches, kind, target)
    else:
        own = np.flatnonzero(kind == which)
        counts[own] = False
        if KINDS[which] in ('place', 'class'):
            # The one with the highest score of those about an object that
            # isn't found would find it; the rest would be duplicates.
            own = own[np.argsort(-detections.score[own], kind='stable')]
            own = own[~_found(matches, len(objects.image))[target[own]]]
            own = own[np.unique(target[own], return_index=True)[1]]
            counts[own] = right[own] = True
            label = label.copy()
            label[own] = objects.label[target[own]]
    return _ap50(objects, detections, counts, right, label, without)


def _ap50(objects: Objects,
          detections: Detections,
          counts: np.ndarray,
          right: np.ndarray,
          label: np.ndarray,
          without: Optional[np.ndarray] = None) -> float:
    """AP at an overlap of 0.5 of detections that are right or wrong."""
    there = ~objects.crowd
    if without is not None:
        there = there & ~without
    positives = np.bincount(
        objects.label[there], minlength=len(objects.class_ids))
    own = np.flatnonzero(counts)
    own = own[np.lexsort(
        (detections.image[own], -detections.score[own], label[own]))]
    values = []
    bounds = np.searchsorted(label[own], np.arange(len(positives) + 1))
    for k in np.flatnonzero(positives):
        hits = right[own[bounds[k]:bounds[k + 1]]]
        true = np.cumsum(hits)
        precision = true / np.arange(1, len(hits) + 1)
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        place = np.searchsorted(true / positives[k], RECALLS)
        values.append(np.r_[precision, 0][place].mean())
    return float(np.mean(values)) if values else 0.
