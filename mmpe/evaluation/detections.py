"""What runs found, as arrays."""
from dataclasses import dataclass, field
from typing import Any, Dict, List

import numpy as np
from pycocotools import mask as mask_utils

from mmpe.engine.usage_error import UsageError
from .objects import Objects, key_of, read_json, run_lengths


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
    if objects.left_out:
        content = [d for d in content
                   if key_of(d['category_id']) not in objects.left_out]
    image = _numbers(path, objects, 'image', content, objects.image_numbers)
    label = _numbers(path, objects, 'category', content,
                     objects.class_numbers)
    try:
        score = np.array([d['score'] for d in content], float)
    except (TypeError, ValueError) as error:
        raise UsageError(f'{path}: a score is no number: {error}') from error
    if not np.isfinite(score).all():
        raise UsageError(f'{path}: {int((~np.isfinite(score)).sum())} scores '
                         'are not finite')
    segmentation: List[dict] = []
    if iou_type == 'segm':
        segmentation = [
            run_lengths(d['segmentation'], objects.image_sizes[i])
            for d, i in zip(content, image)
        ]
        # pycocotools 2.0.11 counts masks in a byte.
        area = [mask_utils.area([mask])[0] for mask in segmentation]
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


def _numbers(path: str, objects: Objects, kind: str, content: List[dict],
             numbers: Dict[str, int]) -> np.ndarray:
    ids = [key_of(d[f'{kind}_id']) for d in content]
    unknown = sorted({id for id in ids if id not in numbers})
    if unknown:
        some = ', '.join(unknown[:5]) + (', ...' if len(unknown) > 5 else '')
        raise UsageError(
            f'{path} has detections of {len(unknown)} {kind} ids that '
            f'{objects.path} has not got: {some}')
    return np.array([numbers[id] for id in ids], int)
