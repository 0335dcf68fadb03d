"""Draw detections of several models beside the ground truth."""
import json
from collections import defaultdict
from pathlib import Path

import cv2
import numpy as np

WIDTH = 320  # of a column, in pixels
GAP = 4
HEADER = 22
FONT = cv2.FONT_HERSHEY_SIMPLEX
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
    save_strips(columns, strips, path)


def save_label_pictures(root, predictions, path):
    """Save one picture with all images of a data set in ADE20K's format.

    Args:
        root (Path): Its folder.
        predictions (dict[str, Path]): Folders of label maps, by the name to
            put above their column.
        path (Path): Where to save it.
    """
    folders = {'ground truth': root / 'annotations/training', **predictions}
    strips = []
    for file in sorted((root / 'images/training').iterdir()):
        pixels = cv2.imread(str(file))
        strips.append(np.hstack([
            label_tile(pixels, cv2.imread(
                str(folder / f'{file.stem}.png'), cv2.IMREAD_UNCHANGED))
            for folder in folders.values()
        ]))
    save_strips(folders, strips, path)


def label_tile(pixels, labels):
    """The image in the colours of its labels, background (1) as it is."""
    hues = (labels.astype(int) * 37 % 180).astype(np.uint8)
    full = np.full_like(hues, 255)
    colors = cv2.cvtColor(np.dstack([hues, full, full]), cv2.COLOR_HSV2BGR)
    mixed = cv2.addWeighted(pixels, 0.4, colors, 0.6, 0)
    return tile(np.where((labels > 1)[..., None], mixed, pixels), [], {})


def save_strips(titles, strips, path):
    """Save rows of images, two a row, under their columns' titles."""
    header = np.hstack([title_bar(title) for title in titles])
    # For a picture about as wide as it is high.
    half = len(strips) // 2
    halves = [np.vstack([header, *strips[:half]]),
              np.vstack([header, *strips[half:]])]
    height = max(map(len, halves))
    cv2.imwrite(str(path), np.hstack([pad(half, height) for half in halves]))


def by_image(boxes):
    found = defaultdict(list)
    for box in boxes:
        found[box['image_id']].append(box)
    return found


def title_bar(title):
    bar = np.full((HEADER, WIDTH, 3), 255, np.uint8)
    cv2.putText(bar, title, (4, HEADER - 7), FONT, 0.5, (0, 0, 0), 1,
                cv2.LINE_AA)
    return bar


def tile(pixels, boxes, names):
    """The image with its boxes, as wide as a column or as high."""
    scale = (WIDTH - GAP) / max(pixels.shape[:2])
    pixels = cv2.resize(pixels, None, fx=scale, fy=scale,
                        interpolation=cv2.INTER_CUBIC)
    # The most certain last, so that nothing covers it.
    for box in sorted(boxes, key=lambda box: box.get('score', 1)):
        draw(pixels, box, scale, names[box['category_id']])
    return pad(pixels, len(pixels) + GAP, WIDTH)


def pad(pixels, height, width=None):
    """Add white below and to the right."""
    below = height - pixels.shape[0]
    right = (width or pixels.shape[1]) - pixels.shape[1]
    return np.pad(pixels, ((0, below), (0, right), (0, 0)),
                  constant_values=255)


def draw(pixels, box, scale, name):
    x, y, w, h = (round(scale * value) for value in box['bbox'])
    hue = box['category_id'] * 37 % 180  # spreads neighbouring categories
    color = cv2.cvtColor(np.uint8([[[hue, 160, 255]]]), cv2.COLOR_HSV2BGR)
    color = color[0, 0].tolist()
    cv2.rectangle(pixels, (x, y), (x + w, y + h), color, 1)
    if 'score' in box:
        name = f'{name} {box["score"]:.2f}'
    label(pixels, name, max(x, 0), max(y, 0), color)


def label(pixels, text, x, y, color):
    """Black letters on the colour of their box, above it if there is room."""
    (w, h), below = cv2.getTextSize(text, FONT, 0.35, 1)
    top = y - h - below if y >= h + below else y
    cv2.rectangle(pixels, (x, top), (x + w + 2, top + h + below), color, -1)
    cv2.putText(pixels, text, (x + 1, top + h + 1), FONT, 0.35, (0, 0, 0), 1,
                cv2.LINE_AA)
