"""Pictures of what runs find: ground truth and each run's boxes, side by
side."""
import base64
import io
import math
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import cv2
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .measure import Measured
from .objects import Objects
from .wording import short

COLUMNS = 3  # more are too small on a phone
# Told apart by most colour-blind people; what is missed is dashed, too.
RIGHT, WRONG, TRUTH, MISSED = '#0072b2', '#d55e00', '#222222', '#8e44ad'


def choose(runs: Sequence[Measured], number: int,
           seed: int) -> Dict[str, List[int]]:
    """Images to show.

    Args:
        runs (Sequence[Measured]): One of each method.
        number (int): Images of each kind.
        seed (int): Of the random ones.

    Returns:
        dict[str, list[int]]: Numbers of ``'most_different'`` images, by how
        far the runs' F1 are apart times how many objects there are, and of
        as many ``'random'`` others.
    """
    objects = runs[0].objects
    wanted = np.bincount(objects.image[~objects.crowd],
                         minlength=len(objects.image_ids))
    quality = np.nan_to_num(np.stack([r.quality for r in runs]))
    gap = (quality.max(0) - quality.min(0)) * wanted
    order = np.argsort(-gap, kind='stable')
    most = [int(i) for i in order[:number] if gap[i] > 0]
    rest = np.setdiff1d(np.arange(len(gap)), most)
    rng = np.random.default_rng(seed)
    drawn = rng.choice(rest, min(number, len(rest)), replace=False)
    return dict(most_different=most, random=sorted(int(i) for i in drawn))


def draw(image: int, runs: Sequence[Measured], names: Sequence[str],
         folder: Optional[Path]) -> Dict[str, Any]:
    """A picture of an image as a data address, and what is under it.

    Args:
        image (int): Number of the image.
        runs (Sequence[Measured]): One of each method.
        names (Sequence[str]): Of the methods.
        folder (Path, optional): Where the images are. Without them boxes are
            drawn on white.
    """
    objects = runs[0].objects
    pixels = _read(folder, objects.file_names[image])
    height, width = (
        pixels.shape[:2] if pixels is not None else _size(objects, image))
    titles = ['ground truth', *names]
    columns = min(len(titles), COLUMNS)
    rows = math.ceil(len(titles) / columns)
    figure = Figure(
        figsize=(3.2 * columns, (3.2 * height / width + 0.3) * rows),
        layout='constrained')
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel in panels:
        panel.set_axis_off()
    for panel, title in zip(panels, titles):
        panel.set_title(short(title, 28), fontsize=9, parse_math=False)
        panel.set_xlim(0, width)
        panel.set_ylim(height, 0)
        panel.set_aspect('equal')
        if pixels is not None:
            panel.imshow(pixels, extent=(0, width, height, 0))
    own = np.flatnonzero(objects.image == image)
    for i in own:
        _box(panels[0], objects.box[i], TRUTH,
             objects.class_names[objects.label[i]], objects.crowd[i])
    for panel, run in zip(panels[1:], runs):
        _draw_run(panel, run, image, own)
    buffer = io.BytesIO()
    figure.savefig(buffer, format='jpeg', dpi=110,
                   pil_kwargs=dict(quality=82, optimize=True))
    data = base64.b64encode(buffer.getvalue()).decode()
    return dict(
        image=str(objects.image_ids[image]),
        file_name=objects.file_names[image],
        quality={name: None if np.isnan(r.quality[image]) else float(
            r.quality[image]) for name, r in zip(names, runs)},
        picture=f'data:image/jpeg;base64,{data}')


def _draw_run(panel, run: Measured, image: int, own: np.ndarray) -> None:
    objects, detections = run.objects, run.detections
    right = np.zeros(len(detections.score), bool)
    found = np.zeros(len(objects.image), bool)
    scores = np.append(detections.score, -np.inf)  # of none, number -1
    for c in run.matches.classes:
        right[c.number[c.rank]] = c.found[0, 0]
        found[c.objects] = scores[c.finder[0]] >= run.cut
    for i in own:
        if not found[i] and not objects.crowd[i]:
            _box(panel, objects.box[i], MISSED, '', True)
    shown = np.flatnonzero(
        (detections.image == image) & (detections.score >= run.cut))
    for d in shown[np.argsort(detections.score[shown])]:
        label = objects.class_names[detections.label[d]]
        _box(panel, detections.box[d], RIGHT if right[d] else WRONG,
             f'{label} {detections.score[d]:.2f}')


def _box(panel, box: np.ndarray, colour: str, text: str,
         dashed: bool = False) -> None:
    x, y, w, h = box
    panel.add_patch(
        Rectangle((x, y), w, h, fill=False, edgecolor=colour, linewidth=1.2,
                  linestyle='--' if dashed else '-'))
    if text:
        panel.text(
            x, y, short(text, 28), fontsize=5, color='white', va='bottom',
            clip_on=True, parse_math=False,
            bbox=dict(facecolor=colour, edgecolor='none', pad=0.6))


def _read(folder: Optional[Path], name: str) -> Optional[np.ndarray]:
    if folder is None:
        return None
    path = Path(folder) / name
    if not path.is_file():
        return None
    # Not cv2.imread, which can't read paths that aren't ASCII everywhere.
    pixels = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    return None if pixels is None else pixels[:, :, ::-1]


def _size(objects: Objects, image: int):
    size = objects.image_sizes[image]
    if np.isfinite(size).all() and (size > 0).all():
        return size
    own = objects.box[objects.image == image]
    far = (own[:, :2] + own[:, 2:]).max(0) if len(own) else np.array([64, 64])
    return far[::-1]
