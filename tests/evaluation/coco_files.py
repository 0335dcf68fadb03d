"""Annotation files and detections for tests, and what pycocotools says."""
import contextlib
import io
import json
from pathlib import Path

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

SAMPLE = Path(__file__).parents[1] / 'data/coco_sample/annotations.json'


def perturbed(content, seed, shift=0.12, masks=False):
    """What a detector might find: objects moved, doubled, of other classes
    and nothing; with scores that tie."""
    rng = np.random.default_rng(seed)
    classes = [c['id'] for c in content['categories']]
    found = []
    for ann in content['annotations']:
        for again in range(rng.integers(0, 3)):
            x, y, w, h = ann['bbox']
            dx, dy, dw, dh = rng.normal(0, shift * (1 + again), 4)
            box = [x + dx * w, y + dy * h, w * np.exp(dw), h * np.exp(dh)]
            label = ann['category_id']
            if rng.random() < 0.15:
                label = int(rng.choice(classes))
            found.append(
                dict(image_id=ann['image_id'], category_id=label,
                     bbox=[float(v) for v in box],
                     score=round(float(rng.random()), 2)))
    for image in content['images']:
        for _ in range(3):
            x, y = rng.random(2) * 200
            found.append(
                dict(image_id=image['id'], category_id=int(
                    rng.choice(classes)), bbox=[x, y, 40., 30.],
                     score=round(float(rng.random() * 0.6), 2)))
    if masks:
        return [_with_mask(d, content) for d in found]
    return found


def _with_mask(detection, content):
    from pycocotools import mask
    size = next((i['height'], i['width']) for i in content['images']
                if i['id'] == detection['image_id'])
    x, y, w, h = detection.pop('bbox')
    polygon = [x, y, x + w, y, x + w * 0.8, y + h, x, y + h]
    lengths = mask.frPyObjects([polygon], *size)[0]
    detection['segmentation'] = dict(
        size=lengths['size'], counts=lengths['counts'].decode())
    return detection


def write(folder, content, **runs):
    """Write files; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'annotations.json').write_text(json.dumps(content))
    for name, found in runs.items():
        (folder / f'{name}.json').write_text(json.dumps(found))
    return folder


def pycocotools(content, found, iou_type='bbox'):
    """Its evaluation of an annotation file and detections in memory."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO()
        truth.dataset = json.loads(json.dumps(content))
        truth.createIndex()
        result = COCOeval(truth, truth.loadRes(json.loads(json.dumps(found))),
                          iou_type)
        result.evaluate()
        result.accumulate()
        result.summarize()
    return result


def by_class(result):
    """Its AP of each class; nan where there is no object."""
    precision = result.eval['precision'][:, :, :, 0, -1]
    with np.errstate(invalid='ignore'):
        values = precision.mean((0, 1))
    return np.where((precision > -1).all((0, 1)), values, np.nan)


STATS = dict(AP=0, AP50=1, AP75=2, APS=3, APM=4, APL=5, AR100=8)


def stats(result):
    """Its numbers by our names; nan for -1."""
    return {
        name: np.nan if result.stats[i] == -1 else result.stats[i]
        for name, i in STATS.items()
    }
