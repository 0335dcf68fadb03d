"""Which detections find which objects, done once and for all resamples.

The rule is that of pycocotools, whose C code computes the overlaps; its own
Python loop over images, classes and sizes takes minutes, and faster-coco-eval
does not hand out what it matched.
"""
from dataclasses import dataclass
from typing import List, Tuple

import numpy as np
from pycocotools import mask as mask_utils

from .detections import Detections
from .objects import Objects

THRESHOLDS = np.linspace(0.5, 0.95, 10)
SIZES = dict(all=(0, 1e10), small=(0, 32**2), medium=(32**2, 96**2),
             large=(96**2, 1e10))
MAX_DETECTIONS = 100


@dataclass(frozen=True)
class ClassMatches:
    """Of one class. S sizes and T thresholds of overlap are as above.

    Args:
        image (ndarray): Numbers of the images of n detections, the highest
            score first.
        score (ndarray): Their scores.
        inside (ndarray): Whether a detection is of each size, ``(S, n)``.
        rank (ndarray): Which m detections match an object at any threshold.
        found (ndarray): Whether that object counts, ``(S, T, m)``.
        ignored (ndarray): Whether it doesn't: a crowd, or of another size.
        object_image (ndarray): Images of the class's objects.
        object_counts (ndarray): Whether an object counts, ``(S, objects)``.
        objects (ndarray): Their numbers in the annotation file.
        finder (ndarray): For each threshold, the detection, by its number in
            the file of detections, that an object of any size is found by;
            -1 if none, ``(T, objects)``.
        number (ndarray): Numbers of the n detections in their file.
    """
    image: np.ndarray
    score: np.ndarray
    inside: np.ndarray
    rank: np.ndarray
    found: np.ndarray
    ignored: np.ndarray
    object_image: np.ndarray
    object_counts: np.ndarray
    objects: np.ndarray
    finder: np.ndarray
    number: np.ndarray


@dataclass(frozen=True)
class Matches:
    """Of all classes.

    Args:
        num_images (int): Images of the annotation file.
        classes (list[ClassMatches]): In the order of the class numbers.
    """
    num_images: int
    classes: List[ClassMatches]


def match(objects: Objects, detections: Detections) -> Matches:
    """Match detections with objects, as pycocotools does: in each image and
    class the highest scores first, each with the object left that it overlaps
    most, and with a crowd or an object of another size only if there is no
    other."""
    kept = _highest_scores(detections)
    ignored = np.stack([
        objects.crowd | (objects.area < low) | (objects.area > high)
        for low, high in SIZES.values()
    ])
    inside = np.stack([(detections.area >= low) & (detections.area <= high)
                       for low, high in SIZES.values()])
    edges = _overlaps(objects, detections, kept)
    shape = len(SIZES), len(THRESHOLDS)
    found = np.zeros((len(detections.score), *shape), bool)
    on_ignored = np.zeros_like(found)
    finder = np.full((len(THRESHOLDS), len(objects.image)), -1)
    _match_rounds(edges, ignored, objects.crowd, found, on_ignored, finder)
    classes = []
    for k in range(len(objects.class_ids)):
        own = kept[detections.label[kept] == k]
        # The highest score first; of equal ones the earlier image.
        own = own[np.argsort(-detections.score[own], kind='stable')]
        rank = np.flatnonzero((found[own] | on_ignored[own]).any((1, 2)))
        mine = np.flatnonzero(objects.label == k)
        classes.append(
            ClassMatches(
                image=detections.image[own],
                score=detections.score[own],
                inside=inside[:, own],
                rank=rank,
                found=found[own[rank]].transpose(1, 2, 0),
                ignored=on_ignored[own[rank]].transpose(1, 2, 0),
                object_image=objects.image[mine],
                object_counts=~ignored[:, mine],
                objects=mine,
                finder=finder[:, mine],
                number=own))
    return Matches(len(objects.image_ids), classes)


def _highest_scores(detections: Detections) -> np.ndarray:
    """The detections that count, by class, image and score."""
    order = np.lexsort(
        (-detections.score, detections.image, detections.label))
    label, image = detections.label[order], detections.image[order]
    if not len(order):
        return order
    new = np.r_[True, (np.diff(label) != 0) | (np.diff(image) != 0)]
    start = np.flatnonzero(new)[np.cumsum(new) - 1]
    return order[np.arange(len(order)) - start < MAX_DETECTIONS]


@dataclass(frozen=True)
class _Edges:
    """Pairs of a detection and an object that overlap enough for the lowest
    threshold.

    Args:
        detection (ndarray): Number of the detection.
        object (ndarray): Number of the object.
        overlap (ndarray): Their intersection over union.
        round (ndarray): How many detections of the same image and class,
            which have such pairs too, come first.
    """
    detection: np.ndarray
    object: np.ndarray
    overlap: np.ndarray
    round: np.ndarray


def _overlaps(objects: Objects, detections: Detections,
              kept: np.ndarray) -> _Edges:
    parts: Tuple[list, ...] = ([], [], [], [])
    for dets, anns in _pairs(objects, detections, kept):
        overlap = overlaps(objects, detections, dets, anns)
        d, a = np.nonzero(overlap >= THRESHOLDS[0])
        if len(d):
            values = (dets[d], anns[a], overlap[d, a],
                      np.unique(d, return_inverse=True)[1])
            for part, value in zip(parts, values):
                part.append(value)
    kinds = int, int, float, int
    return _Edges(*(np.concatenate(part) if part else np.zeros(0, kind)
                    for part, kind in zip(parts, kinds)))


def overlaps(objects: Objects, detections: Detections, dets: np.ndarray,
             anns: np.ndarray) -> np.ndarray:
    """Intersection over union of detections and objects of an image,
    ``(detections, objects)``; of a crowd, over the detection."""
    crowd = objects.crowd[anns].astype(np.uint8).tolist()
    if detections.iou_type == 'bbox':
        return np.asarray(
            mask_utils.iou(detections.box[dets], objects.box[anns], crowd))
    return np.asarray(
        mask_utils.iou([detections.segmentation[d] for d in dets],
                       [objects.mask(a) for a in anns], crowd))


def _pairs(objects: Objects, detections: Detections, kept: np.ndarray):
    """Detections and objects of each image and class that has both."""
    n = len(objects.image_ids)
    theirs = detections.label[kept] * n + detections.image[kept]
    own = objects.label * n + objects.image
    order = np.argsort(own, kind='stable')
    keys, starts = np.unique(theirs, return_index=True)
    ends = np.r_[starts[1:], len(theirs)]
    lows = np.searchsorted(own[order], keys, 'left')
    highs = np.searchsorted(own[order], keys, 'right')
    for start, end, low, high in zip(starts, ends, lows, highs):
        if high > low:
            yield kept[start:end], order[low:high]


def _match_rounds(edges: _Edges, ignored: np.ndarray, crowd: np.ndarray,
                  found: np.ndarray, on_ignored: np.ndarray,
                  finder: np.ndarray) -> None:
    """Let the detections of all images and classes choose at the same time,
    the r-th of each in round r."""
    ignored = ignored.T[:, :, None]  # (objects, S, 1)
    left = np.ones((len(crowd), len(SIZES), len(THRESHOLDS)), bool)
    order = np.argsort(edges.round, kind='stable')
    ends = np.cumsum(np.bincount(edges.round)) if len(order) else []
    for own in np.split(order, ends[:-1]) if len(order) else []:
        detection, target = edges.detection[own], edges.object[own]
        overlap = edges.overlap[own][:, None, None]
        # One that counts before all that are ignored.
        value = np.where(
            left[target] & (overlap >= np.minimum(THRESHOLDS, 1 - 1e-10)),
            overlap + 2 * ~ignored[target], -1.)
        starts = np.flatnonzero(np.r_[True, np.diff(detection) != 0])
        sizes = np.diff(np.r_[starts, len(own)])
        best = np.maximum.reduceat(value, starts)
        is_best = value == np.repeat(best, sizes, axis=0)
        # Of equals the last, as there.
        place = np.where(is_best, np.arange(len(own))[:, None, None], -1)
        chosen = target[np.maximum.reduceat(place, starts)]
        who = detection[starts]
        found[who] = best >= 2
        on_ignored[who] = (best >= 0) & (best < 2)
        taken = (best >= 0) & ~crowd[chosen]
        _, size, threshold = np.nonzero(taken)
        left[chosen[taken], size, threshold] = False
        everywhere = best[:, 0] >= 2
        row, t = np.nonzero(everywhere)
        finder[t, chosen[row, 0, t]] = who[row]
