"""Objects of an annotation file and detections, as arrays."""
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

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

    @cached_property
    def counts(self) -> np.ndarray:
        """Objects of each class, without crowds."""
        return np.bincount(
            self.label[~self.crowd], minlength=len(self.class_ids))

    @cached_property
    def image_numbers(self) -> Dict[str, int]:
        """By id as text, since some tools write ids as text."""
        return {str(id): i for i, id in enumerate(self.image_ids)}

    @cached_property
    def class_numbers(self) -> Dict[str, int]:
        return {str(id): i for i, id in enumerate(self.class_ids)}

    def mask(self, i: int) -> dict:
        """Run lengths of an object's mask."""
        return _run_lengths(self.segmentation[i],
                            self.image_sizes[self.image[i]])


@dataclass(frozen=True)
class Detections:
    """What a run found, in the order of its file.

    Args:
        path (str): The file.
        iou_type (str): ``'bbox'`` or ``'segm'``.
        image (ndarray): Of each detection, the number of its image.
        label (ndarray): The number of its class.
        score (ndarray): Its score.
        box (ndarray): x, y, width and height, ``(n, 4)``.
        area (ndarray): Of the box or the mask, in pixels.
        segmentation (list): Run lengths; empty for boxes.
    """
    path: str
    iou_type: str
    image: np.ndarray
    label: np.ndarray
    score: np.ndarray
    box: np.ndarray
    area: np.ndarray
    segmentation: List[dict] = field(repr=False)


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


def read_objects(path: str) -> Objects:
    """Read an annotation file in COCO's format.

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
    classes = _by_id(path, parts[2], 'category')
    image_numbers = {str(x['id']): i for i, x in enumerate(images)}
    class_numbers = {str(x['id']): i for i, x in enumerate(classes)}
    anns = [a for a in parts[1] if not _is_empty(a)]
    try:
        image = [image_numbers[str(a['image_id'])] for a in anns]
        label = [class_numbers[str(a['category_id'])] for a in anns]
        box = np.array([a['bbox'] for a in anns], float).reshape(-1, 4)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f'{path}: an annotation has no bbox of four numbers, or is of '
            f'another image or category: {error}') from error
    given = np.array([
        math.nan if a.get('area') is None else float(a['area']) for a in anns
    ])
    if np.isnan(given).any():
        notes.append(f'{int(np.isnan(given).sum())} objects have no area in '
                     'the file: that of the box is taken')
    area = np.where(np.isnan(given), box[:, 2] * box[:, 3], given)
    return Objects(
        path=path,
        image_ids=[x['id'] for x in images],
        image_sizes=np.array([[x.get('height', math.nan),
                               x.get('width', math.nan)] for x in images],
                             float),
        file_names=[str(x.get('file_name', x['id'])) for x in images],
        class_ids=[x['id'] for x in classes],
        class_names=_distinct([str(x.get('name', x['id'])) for x in classes],
                              [x['id'] for x in classes], notes),
        image=np.array(image, int),
        label=np.array(label, int),
        box=box,
        area=area,
        crowd=np.array([bool(a.get('iscrowd', 0)) for a in anns], bool),
        segmentation=[a.get('segmentation') for a in anns],
        notes=notes)


def read_detections(path: str, objects: Objects,
                    iou_type: str = 'bbox') -> Detections:
    """Read detections in COCO's result format.

    Args:
        path (str): The file.
        objects (Objects): What they are compared with.
        iou_type (str): ``'bbox'`` or ``'segm'``. Defaults to ``'bbox'``.

    Raises:
        UsageError: If it is no such file, or names images or categories that
            the annotation file hasn't got.
    """
    content = read_json(path)
    if not isinstance(content, list):
        raise UsageError(f'{path} is no list of detections')
    key = 'bbox' if iou_type == 'bbox' else 'segmentation'
    lacking = [d for d in content if not isinstance(d, dict) or not {
        'image_id', 'category_id', 'score', key} <= set(d)]
    if lacking:
        raise UsageError(f'{path}: a detection needs image_id, category_id, '
                         f'score and {key}, not {str(lacking[0])[:80]}')
    image = _numbers(path, objects, 'image', content, objects.image_numbers)
    label = _numbers(path, objects, 'category', content,
                     objects.class_numbers)
    score = np.array([d['score'] for d in content], float)
    if not np.isfinite(score).all():
        raise UsageError(f'{path}: {int((~np.isfinite(score)).sum())} scores '
                         'are not finite')
    segmentation: List[dict] = []
    if iou_type == 'segm':
        segmentation = [
            _run_lengths(d['segmentation'], objects.image_sizes[i])
            for d, i in zip(content, image)
        ]
        # pycocotools 2.0.11 counts masks in a byte.
        area = [mask_utils.area(mask) for mask in segmentation]
        box = mask_utils.toBbox(segmentation) if content else []
        box = np.asarray(box, float).reshape(-1, 4)
    else:
        try:
            box = np.array([d['bbox'] for d in content], float).reshape(
                len(content), 4)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f'{path}: a bbox is not four numbers: {error}') from error
        area = np.prod(box[:, 2:], axis=1)
    return Detections(path, iou_type, image, label, score, box,
                      np.asarray(area, float), segmentation)


def _is_empty(annotation: Any) -> bool:
    return not isinstance(annotation, dict) or annotation.get('bbox') is None


def _by_id(path: str, items: Sequence[Any], kind: str) -> List[dict]:
    """Sorted by id: numbers as numbers, anything else as text."""
    if not all(isinstance(x, dict) and 'id' in x for x in items):
        raise UsageError(f'{path}: each {kind} needs an id')
    counts = Counter(str(x['id']) for x in items)
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


def _numbers(path: str, objects: Objects, kind: str, content: List[dict],
             numbers: Dict[str, int]) -> np.ndarray:
    ids = [str(d[f'{kind}_id']) for d in content]
    unknown = sorted({id for id in ids if id not in numbers})
    if unknown:
        some = ', '.join(unknown[:5]) + (', ...' if len(unknown) > 5 else '')
        raise UsageError(
            f'{path} has detections of {len(unknown)} {kind} ids that '
            f'{objects.path} has not got: {some}')
    return np.array([numbers[id] for id in ids], int)


def _run_lengths(segmentation: Any, size: Tuple[float, float]) -> dict:
    """Polygons or run lengths of a mask as compressed run lengths."""
    if isinstance(segmentation, dict):
        if isinstance(segmentation['counts'], list):
            return mask_utils.frPyObjects(segmentation,
                                          *segmentation['size'])
        return segmentation
    if not np.isfinite(size).all():
        raise UsageError('the annotation file has masks as polygons, but no '
                         'height and width of their images')
    height, width = (int(n) for n in size)
    return mask_utils.merge(
        mask_utils.frPyObjects(segmentation, height, width))
