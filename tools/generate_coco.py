"""Write a data set in COCO's format and what two detectors might find in it.

For measuring the report at any size: by default that of COCO val2017. The
numbers are drawn from a seed and mean nothing.

    python tools/generate_coco.py OUT [--images 5000 --objects 36000 ...]
"""
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np

HEIGHT, WIDTH = 480, 640


def parse_args() -> Namespace:
    parser = ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('out', type=Path, help='folder')
    parser.add_argument('--images', type=int, default=5000)
    parser.add_argument('--objects', type=int, default=36000)
    parser.add_argument('--classes', type=int, default=80)
    parser.add_argument(
        '--detections', type=int, default=100, help='in each image')
    parser.add_argument(
        '--shift',
        type=float,
        nargs='+',
        default=[0.10, 0.12],
        help='how far boxes are off, of their size, one for each detector')
    parser.add_argument(
        '--masks', action='store_true', help='octagons as masks')
    parser.add_argument('--seed', type=int, default=0)
    return parser.parse_args()


def boxes(rng: np.random.Generator, n: int) -> np.ndarray:
    """Of COCO's range of sizes, ``(n, 4)``: x, y, width, height."""
    size = np.exp(rng.normal(4, 0.9, (n, 2))).clip(6, 460)
    corner = rng.random((n, 2)) * np.maximum([WIDTH, HEIGHT] - size, 1)
    return np.concatenate([corner, size], 1).round(2)


def octagon(box: np.ndarray) -> list:
    """A polygon inside a box."""
    x, y, w, h = box
    a, b = w * 0.3, h * 0.3
    points = [(x + a, y), (x + w - a, y), (x + w, y + b), (x + w, y + h - b),
              (x + w - a, y + h), (x + a, y + h), (x, y + h - b), (x, y + b)]
    return [float(round(v, 2)) for point in points for v in point]


def annotations(args: Namespace, rng: np.random.Generator) -> dict:
    """Objects spread as COCO's are: few classes have most of them, one in a
    hundred is a crowd."""
    share = 1 / np.arange(1, args.classes + 1)**0.8
    label = rng.choice(args.classes, args.objects, p=share / share.sum())
    image = np.minimum((rng.random(args.objects)**1.3 * args.images).astype(
        int), args.images - 1)
    anns = []
    for i, box in enumerate(boxes(rng, args.objects)):
        ann = dict(
            id=i + 1,
            image_id=int(image[i]) * 3 + 7,
            category_id=int(label[i]) + 1,
            bbox=[float(v) for v in box],
            area=float(box[2] * box[3] * 0.7),
            iscrowd=int(rng.random() < 0.01))
        if args.masks:
            ann['segmentation'] = [octagon(box)]
        anns.append(ann)
    return dict(
        images=[dict(id=i * 3 + 7, height=HEIGHT, width=WIDTH,
                     file_name=f'{i:012d}.jpg') for i in range(args.images)],
        categories=[dict(id=k + 1, name=f'class {k}')
                    for k in range(args.classes)],
        annotations=anns)


def detections(args: Namespace, objects: dict, shift: float,
               rng: np.random.Generator) -> list:
    """Most objects, some twice or as another class, and background."""
    found = []

    def add(image_id, category_id, box, score):
        found.append(
            dict(image_id=image_id, category_id=int(category_id),
                 bbox=[round(float(v), 2) for v in box],
                 score=round(float(score), 4)))

    for ann in objects['annotations']:
        for again in range(int(rng.random() < 0.8) + int(rng.random() < 0.15)):
            box = np.array(ann['bbox'])
            off = rng.normal(0, shift * (1 + again), 4)
            box[:2] += off[:2] * box[2:]
            box[2:] *= np.exp(off[2:])
            category = ann['category_id']
            if rng.random() < 0.1:
                category = rng.integers(1, args.classes + 1)
            add(ann['image_id'], category, box, rng.beta(4, 2 + 2 * again))
    left = np.full(args.images, args.detections)
    for d in found:
        left[(d['image_id'] - 7) // 3] -= 1
    for i, n in enumerate(left):
        for box in boxes(rng, max(int(n), 0)):
            add(i * 3 + 7, rng.integers(1, args.classes + 1), box,
                rng.beta(1, 5))
    return found


def main() -> None:
    args = parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(args.seed)
    objects = annotations(args, rng)
    (args.out / 'annotations.json').write_text(json.dumps(objects))
    for i, shift in enumerate(args.shift):
        name = chr(ord('a') + i)
        found = detections(args, objects, shift, rng)
        (args.out / f'{name}.bbox.json').write_text(json.dumps(found))
        if args.masks:
            # Without boxes, from which pycocotools would take the areas.
            masks = [dict(segmentation=_run_lengths(d.pop('bbox')), **d)
                     for d in found]
            (args.out / f'{name}.segm.json').write_text(json.dumps(masks))
    print(f'Wrote {args.out}')


def _run_lengths(box: list) -> dict:
    from pycocotools import mask
    lengths = mask.frPyObjects([octagon(np.array(box))], HEIGHT, WIDTH)[0]
    return dict(size=lengths['size'], counts=lengths['counts'].decode())


if __name__ == '__main__':
    main()
