"""Draw detections of several models beside the ground truth."""
import json
from collections import defaultdict
from pathlib import Path

import cv2
import numpy as np

TILE = 288  # pixels
HEADER = 22
# A model that is far from converged is still unsure of what it finds.
MIN_SCORE = 0.3


def save_pictures(dataset, predictions, path):
    """Save one picture with all images of a data set.

    Args:
        dataset (dict): ``data_root``, ``ann_file`` and ``data_prefix`` of a
            COCO data set.
        predictions (dict[str, Path]): Files in COCO's result format, by the
            name to put above their column.
        path (Path): Where to save it.
    """
    root = Path(dataset['data_root'])
    coco = json.loads((root / dataset['ann_file']).read_text())
    names = {entry['id']: entry['name'] for entry in coco['categories']}
    columns = {'ground truth': by_image(coco['annotations'])}
    for title, file in predictions.items():
        columns[title] = by_image(
            box for box in json.loads(Path(file).read_text())
            if box['score'] >= MIN_SCORE)

    strips = []
    for image in coco['images']:
        file = root / dataset['data_prefix']['img'] / image['file_name']
        pixels = cv2.imread(str(file))
        strips.append(np.hstack([
            tile(pixels, boxes[image['id']], names)
            for boxes in columns.values()
        ]))
    header = np.hstack([title_bar(title) for title in columns])
    # Two images a row, for a picture about as wide as it is high.
    halves = [
        np.vstack([header, *strips[:len(strips) // 2]]),
        np.vstack([header, *strips[len(strips) // 2:]])
    ]
    cv2.imwrite(str(path), np.hstack(halves))


def by_image(boxes):
    found = defaultdict(list)
    for box in boxes:
        found[box['image_id']].append(box)
    return found


def title_bar(title):
    bar = np.full((HEADER, TILE, 3), 255, np.uint8)
    write(bar, title, (4, HEADER - 7), (0, 0, 0), 0.5)
    return bar


def tile(pixels, boxes, names):
    """A square with the image, scaled to fit, and its boxes."""
    scale = (TILE - 4) / max(pixels.shape[:2])
    pixels = cv2.resize(pixels, None, fx=scale, fy=scale)
    # The most certain last, so that nothing covers it.
    for box in sorted(boxes, key=lambda box: box.get('score', 1)):
        draw(pixels, box, scale, names[box['category_id']])
    square = np.full((TILE, TILE, 3), 255, np.uint8)
    square[:pixels.shape[0], :pixels.shape[1]] = pixels
    return square


def draw(pixels, box, scale, name):
    x, y, w, h = (round(scale * value) for value in box['bbox'])
    hue = box['category_id'] * 37 % 180  # spreads neighbouring categories
    color = cv2.cvtColor(np.uint8([[[hue, 255, 255]]]), cv2.COLOR_HSV2BGR)
    color = color[0, 0].tolist()
    cv2.rectangle(pixels, (x, y), (x + w, y + h), color, 1)
    if 'score' in box:
        name = f'{name} {box["score"]:.2f}'
    write(pixels, name, (max(x, 0) + 2, max(y, 0) + 11), color, 0.38)


def write(pixels, text, corner, color, size):
    if max(color):  # a dark outline keeps bright letters readable
        cv2.putText(pixels, text, corner, cv2.FONT_HERSHEY_SIMPLEX, size,
                    (0, 0, 0), 3, cv2.LINE_AA)
    cv2.putText(pixels, text, corner, cv2.FONT_HERSHEY_SIMPLEX, size, color, 1,
                cv2.LINE_AA)
