"""Objects of an annotation file, as arrays."""
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
from pycocotools import mask as mask_utils

from mmpe.engine.usage_error import UsageError


@dataclass(frozen=True)
class Objects:
    """The ground truth. Images and classes are numbered in the order of their
    ids, as pycocotools goes through them.

    Args:
        path (str): The annotation file.
        image_ids (list): Of n images.
        image_sizes (ndarray): Height and width, ``(n, 2)``; nan if not told.
        file_names (list[str]): Of the images.
        class_ids (list): Of K classes.
        class_names (list[str]): Distinct ones.
        image (ndarray): Of each of m objects, the number of its image.
        label (ndarray): The number of its class.
        box (ndarray): x, y, width and height in pixels, ``(m, 4)``.
        area (ndarray): In pixels; the box's where the file has none.
        crowd (ndarray): Whether it is a crowd, bool.
        segmentation (list): As in the file; None where that has none.
        notes (list[str]): What a reader should know of the file.
        left_out (frozenset): Ids of classes that don't count, as text.
    """
    path: str
    image_ids: List[Any]
    image_sizes: np.ndarray
    file_names: List[str]
    class_ids: List[Any]
    class_names: List[str]
    image: np.ndarray
    label: np.ndarray
    box: np.ndarray
    area: np.ndarray
    crowd: np.ndarray
    segmentation: List[Any] = field(repr=False)
    notes: List[str]
    left_out: frozenset = frozenset()

    @cached_property
    def counts(self) -> np.ndarray:
        """Objects of each class, without crowds."""
        return np.bincount(
            self.label[~self.crowd], minlength=len(self.class_ids))

    @cached_property
    def image_numbers(self) -> Dict[str, int]:
        """By id as text, since some tools write ids as text."""
        return {key_of(id): i for i, id in enumerate(self.image_ids)}

    @cached_property
    def class_numbers(self) -> Dict[str, int]:
        return {key_of(id): i for i, id in enumerate(self.class_ids)}

    def mask(self, i: int) -> dict:
        """Run lengths of an object's mask."""
        return run_lengths(self.segmentation[i],
                            self.image_sizes[self.image[i]])


def read_json(path: str) -> Any:
    """The content of a JSON file.

    Raises:
        UsageError: If it is missing, cut off or something else.
    """
    try:
        return json.loads(Path(path).read_text(encoding='utf-8'))
    except OSError as error:
        raise UsageError(f'cannot read {path}: {error.strerror}') from error
    except ValueError as error:
        raise UsageError(f'{path} is no JSON, or cut off: {error}') from error


def read_objects(path: str,
                 classes: Optional[Sequence[str]] = None) -> Objects:
    """Read an annotation file in COCO's format.

    Args:
        path (str): The file.
        classes (Sequence[str], optional): Names of the classes that count,
            of those that the file has. Defaults to all.

    Raises:
        UsageError: If it isn't one, or an object is of an image or a class
            that it doesn't have.
    """
    content = read_json(path)
    parts = [content.get(key) if isinstance(content, dict) else None
             for key in ('images', 'annotations', 'categories')]
    if not all(isinstance(part, list) for part in parts) or not parts[0]:
        raise UsageError(f'{path} is no annotation file: it needs lists of '
                         'images, annotations and categories')
    notes: List[str] = []
    images = _by_id(path, parts[0], 'image')
    kinds = _by_id(path, parts[2], 'category')
    anns = [a for a in parts[1] if not _is_empty(a)]
    if len(anns) < len(parts[1]):
        notes.append(f'{len(parts[1]) - len(anns)} annotations have no bbox '
                     'and are left out')
    left_out = frozenset()
    wanted = [x for x in kinds if classes and x.get('name') in classes]
    if 0 < len(wanted) < len(kinds):
        notes.append(f'{len(wanted)} of {len(kinds)} classes count, those '
                     'that the runs were tested on')
        left_out = frozenset(key_of(x['id']) for x in kinds
                             if x not in wanted)
        anns = [a for a in anns
                if key_of(a.get('category_id')) not in left_out]
        kinds = wanted
    image_numbers = {key_of(x['id']): i for i, x in enumerate(images)}
    class_numbers = {key_of(x['id']): i for i, x in enumerate(kinds)}
    try:
        image = [image_numbers[key_of(a['image_id'])] for a in anns]
        label = [class_numbers[key_of(a['category_id'])] for a in anns]
        box = np.array([a['bbox'] for a in anns], float).reshape(-1, 4)
        given = np.array([math.nan if a.get('area') is None else
                          float(a['area']) for a in anns])
        sizes = np.array([[x.get('height', math.nan),
                           x.get('width', math.nan)] for x in images], float)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f'{path}: an annotation has no bbox of four numbers, or is of '
            'another image or category, or a size is no number: '
            f'{error}') from error
    if np.isnan(given).any():
        notes.append(f'{int(np.isnan(given).sum())} objects have no area in '
                     'the file: that of the box is taken')
    area = np.where(np.isnan(given), box[:, 2] * box[:, 3], given)
    return Objects(
        path=path,
        image_ids=[x['id'] for x in images],
        image_sizes=sizes,
        file_names=[str(x.get('file_name', x['id'])) for x in images],
        class_ids=[x['id'] for x in kinds],
        class_names=_distinct([str(x.get('name', x['id'])) for x in kinds],
                              [x['id'] for x in kinds], notes),
        image=np.array(image, int),
        label=np.array(label, int),
        box=box,
        area=area,
        crowd=np.array([bool(a.get('iscrowd', 0)) for a in anns], bool),
        segmentation=[a.get('segmentation') for a in anns],
        notes=notes,
        left_out=left_out)


def key_of(id: Any) -> str:
    """An id as text; 1.0, as some tools write it, is 1."""
    return str(int(id) if isinstance(id, float) and id.is_integer() else id)


def _is_empty(annotation: Any) -> bool:
    return not isinstance(annotation, dict) or annotation.get('bbox') is None


def _by_id(path: str, items: Sequence[Any], kind: str) -> List[dict]:
    """Sorted by id: numbers as numbers, anything else as text."""
    if not all(isinstance(x, dict) and 'id' in x for x in items):
        raise UsageError(f'{path}: each {kind} needs an id')
    counts = Counter(key_of(x['id']) for x in items)
    twice = [id for id, n in counts.items() if n > 1]
    if twice:
        raise UsageError(f'{path}: {kind} id {twice[0]} is there twice')
    if all(isinstance(x['id'], (int, float)) for x in items):
        return sorted(items, key=lambda x: x['id'])
    return sorted(items, key=lambda x: str(x['id']))


def _distinct(names: List[str], ids: List[Any],
              notes: List[str]) -> List[str]:
    counts = Counter(names)
    twice = [name for name, n in counts.items() if n > 1]
    if twice:
        notes.append(f'{len(twice)} class names are those of several ids, '
                     f'such as {twice[0]!r}')
    return [f'{name} (id {id})' if counts[name] > 1 else name
            for name, id in zip(names, ids)]


def run_lengths(segmentation: Any, size: Tuple[float, float]) -> dict:
    """Polygons or run lengths of a mask as compressed run lengths."""
    if not segmentation:
        raise UsageError('an object or a detection has no mask to compare')
    try:
        if isinstance(segmentation, dict):
            if isinstance(segmentation['counts'], list):
                return mask_utils.frPyObjects(segmentation,
                                              *segmentation['size'])
            return {k: segmentation[k] for k in ('size', 'counts')}
        if not np.isfinite(size).all():
            raise UsageError('the annotation file has masks as polygons, but '
                             'no height and width of their images')
        height, width = (int(n) for n in size)
        return mask_utils.merge(
            mask_utils.frPyObjects(segmentation, height, width))
    except UsageError:
        raise
    except Exception as error:  # what pycocotools raises
        raise UsageError(f'a mask is neither polygons nor run lengths: '
                         f'{str(segmentation)[:60]}') from error
