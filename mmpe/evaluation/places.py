"""Where in the images objects are found: by their place, distance to the
border, crowd and size; and AP by the shape of the image."""
from typing import Dict, List, NamedTuple, Sequence

import numpy as np

from .matching import SIZES, Matches
from .objects import Objects

CELLS = 5
BORDERS = (0., 0.05, 0.1, 0.2, 0.3, 0.5)
NEIGHBOURS = ('none', '1', '2 or 3', '4 or more')
ASPECTS = {'taller than 4:5': (0, 0.8), 'about square': (0.8, 1.25),
           '5:4 to 3:2': (1.25, 1.5), 'wider than 3:2': (1.5, np.inf)}


class Grouping(NamedTuple):
    """Objects in groups.

    Args:
        names (list[str]): Of the groups.
        group (ndarray): Of each object; -1 of none.
    """
    names: List[str]
    group: np.ndarray


def groupings(objects: Objects) -> Dict[str, Grouping]:
    """Objects by place, a grid of ``CELLS`` rows and columns of the image; by
    distance of the box to the nearest border, in shares of the image's side;
    by how many other objects the box overlaps; and by size. Without crowds,
    and by place only where the file tells the size of the image."""
    size = objects.image_sizes[objects.image]  # height, width
    low = objects.box[:, 1::-1]  # y, x
    high = low + objects.box[:, 3:1:-1]
    known = np.isfinite(size).all(1) & (size > 0).all(1)
    size = np.where(known[:, None], size, 1.)
    centre = ((low + high) / 2 / size).clip(0, 1 - 1e-9)
    cell = (centre * CELLS).astype(int)
    border = np.minimum(low / size, 1 - high / size).min(1).clip(0)
    areas = [SIZES[name][0] for name in ('small', 'medium', 'large')]
    out = dict(
        place=Grouping(
            [f'row {r + 1}, column {c + 1}' for r in range(CELLS)
             for c in range(CELLS)],
            np.where(known, cell[:, 0] * CELLS + cell[:, 1], -1)),
        border=Grouping(
            [f'{a:.0%} to {b:.0%}' for a, b in zip(BORDERS, BORDERS[1:])],
            np.where(known, np.searchsorted(BORDERS, border, 'right') - 1,
                     -1)),
        crowding=Grouping(
            list(NEIGHBOURS),
            np.searchsorted([0, 1, 2, 4], _neighbours(objects), 'right') - 1),
        size=Grouping(['small', 'medium', 'large'],
                      np.searchsorted(areas, objects.area, 'right') - 1))
    return {
        name: Grouping(names, np.where(
            objects.crowd, -1, np.minimum(group, len(names) - 1)))
        for name, (names, group) in out.items()
    }


def _neighbours(objects: Objects) -> np.ndarray:
    """How many other objects of the image each box overlaps."""
    out = np.zeros(len(objects.image), int)
    order = np.argsort(objects.image, kind='stable')
    for own in np.split(order, np.flatnonzero(
            np.diff(objects.image[order])) + 1):
        low = objects.box[own, :2]
        high = low + objects.box[own, 2:]
        apart = ((low[:, None] >= high) | (high[:, None] <= low)).any(2)
        out[own] = (~apart).sum(1) - 1
    return out.clip(0)


def found(matches: Matches, num_objects: int) -> np.ndarray:
    """At which share of the thresholds of overlap each object is found, in
    the 100 detections of its class and image: its mean is the recall AR100
    with all classes together. ``(objects, )``."""
    out = np.zeros(num_objects)
    for c in matches.classes:
        out[c.objects] = (c.finder >= 0).mean(0)
    return out


def recall_by_group(objects: Objects, grouping: Grouping, share: np.ndarray,
                    weights: np.ndarray) -> np.ndarray:
    """Recall of each group for each weighting of the images.

    Args:
        objects (Objects): The ground truth.
        grouping (Grouping): Of them.
        share (ndarray): What :func:`found` gives of a run.
        weights (ndarray): ``(B, images)``.

    Returns:
        ndarray: ``(B, groups)``, in percent; nan without objects.
    """
    there = grouping.group >= 0
    shape = len(objects.image_ids), len(grouping.names)
    place = objects.image[there], grouping.group[there]
    number, total = np.zeros(shape), np.zeros(shape)
    np.add.at(number, place, 1)
    np.add.at(total, place, share[there])
    number, total = weights @ number, weights @ total
    return np.where(number > 0, 100 * total / np.maximum(number, 1), np.nan)


def counts(grouping: Grouping) -> List[int]:
    """Objects of each group."""
    own = grouping.group[grouping.group >= 0]
    return np.bincount(own, minlength=len(grouping.names)).tolist()


def aspect_weights(objects: Objects) -> Dict[str, np.ndarray]:
    """Images by width over height, as weights of 0 and 1."""
    height, width = objects.image_sizes.T
    with np.errstate(invalid='ignore', divide='ignore'):
        aspect = width / height
    return {
        name: ((aspect >= low) & (aspect < high)).astype(float)
        for name, (low, high) in ASPECTS.items()
    }


def share_of_padding(sizes: np.ndarray, scale: Sequence[int],
                     batch_size: int, divisor: int = 1) -> float:
    """The mean share of a batch's canvas that is padding, when images are
    resized to fit in ``scale`` (longer and shorter side, either way round)
    and batched in their order.

    Args:
        sizes (ndarray): Heights and widths, ``(images, 2)``.
        scale (Sequence[int]): As MMDetection's ``Resize`` has it.
        batch_size (int): Images of a batch.
        divisor (int): What the canvas's sides are multiples of.
    """
    long, short = max(scale), min(scale)
    ratio = np.minimum(long / sizes.max(1), short / sizes.min(1))
    sides = np.round(sizes * ratio[:, None])
    shares = []
    for start in range(0, len(sides), batch_size):
        batch = sides[start:start + batch_size]
        canvas = np.ceil(batch.max(0) / divisor) * divisor
        shares.append(1 - batch.prod(1).mean() / canvas.prod())
    return float(np.mean(shares))
