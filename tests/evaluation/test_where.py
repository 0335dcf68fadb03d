"""Kinds of errors and places of objects."""
import json

import numpy as np
import pytest
from coco_files import SAMPLE, perturbed, write

from mmpe.evaluation.errors import KINDS, split_errors
from mmpe.evaluation.matching import match
from mmpe.evaluation.detections import read_detections
from mmpe.evaluation.objects import read_objects
from mmpe.evaluation.places import (aspect_weights, counts, found, groupings,
                                    recall_by_group, share_of_padding)

CONTENT = json.loads(SAMPLE.read_text())
BOX = [10., 10., 40., 40.]


def scene(folder, anns, dets, images=1):
    """Annotations and detections of ``(image, class, box)``."""
    content = dict(
        images=[dict(id=i + 1, height=100, width=200) for i in range(images)],
        categories=[dict(id=1, name='a'), dict(id=2, name='b')],
        annotations=[
            dict(id=n + 1, image_id=i, category_id=k, bbox=box, iscrowd=0,
                 area=box[2] * box[3]) for n, (i, k, box) in enumerate(anns)
        ])
    run = [dict(image_id=i, category_id=k, bbox=box, score=1 - n / 100)
           for n, (i, k, box) in enumerate(dets)]
    write(folder, content, run=run)
    objects = read_objects(str(folder / 'annotations.json'))
    detections = read_detections(str(folder / 'run.json'), objects)
    return objects, detections, match(objects, detections)


def moved(by):
    """The box with an IoU that falls with ``by``."""
    return [BOX[0] + by, *BOX[1:]]


@pytest.mark.parametrize('dets, kind', [
    ([(1, 2, BOX)], 'class'),
    ([(1, 1, moved(25))], 'place'),
    ([(1, 2, moved(25))], 'both'),
    ([(1, 1, BOX), (1, 1, moved(1))], 'duplicate'),
    ([(1, 1, [150., 60., 40., 40.])], 'background'),
    ([], 'missed'),
])
def test_kinds_of_errors(tmp_path, dets, kind):
    anns = [(1, 1, BOX), (2, 1, BOX), (2, 2, moved(100))]
    rest = [(2, 1, BOX), (2, 2, moved(100))]
    errors = split_errors(*scene(tmp_path, anns, dets + rest, 2))
    made = {k for k, n in zip(KINDS, errors.counts.sum(0)) if n}
    if kind in ('both', 'background', 'missed'):
        assert made == {kind, 'missed'}
    else:
        assert made == {kind}
    assert errors.counts[1].sum() == 0
    if kind in ('class', 'place', 'missed'):
        assert errors.gain[kind] > 10
    best = max(errors.gain, key=errors.gain.get)
    assert kind == best or kind in ('both', 'duplicate', 'background')


def test_gain_of_a_duplicate_and_of_background(tmp_path):
    """They cost something only where they come before what is right."""
    anns = [(1, 1, BOX), (1, 1, [100., 10., 40., 40.])]
    for wrong, kind in (moved(2), 'duplicate'), ([0., 60., 9., 9.],
                                                 'background'):
        dets = [(1, 1, BOX), (1, 1, wrong), (1, 1, [100., 10., 40., 40.])]
        errors = split_errors(*scene(tmp_path, anns, dets))
        assert errors.gain[kind] == pytest.approx(
            100 * (1 - (51 + 50 * 2 / 3) / 101))
        assert all(v == pytest.approx(0) for k, v in errors.gain.items()
                   if k != kind)


def test_correcting_never_costs_anything(tmp_path):
    for seed in range(4):
        write(tmp_path, CONTENT, run=perturbed(CONTENT, seed))
        objects = read_objects(str(tmp_path / 'annotations.json'))
        detections = read_detections(str(tmp_path / 'run.json'), objects)
        errors = split_errors(objects, detections, match(objects, detections))
        assert all(gain >= -1e-9 for gain in errors.gain.values())
        assert (errors.counts >= 0).all()


def test_groups(tmp_path):
    anns = [(1, 1, [0., 0., 20., 20.]), (1, 1, [10., 10., 20., 20.]),
            (1, 2, [90., 40., 20., 20.]), (2, 1, [180., 80., 20., 20.])]
    objects, detections, matches = scene(
        tmp_path, anns, [(1, 1, anns[0][2]), (2, 1, anns[3][2])], 2)
    found_groups = groupings(objects)
    place = found_groups['place']
    assert [place.names[g] for g in place.group] == [
        'row 1, column 1', 'row 2, column 1', 'row 3, column 3',
        'row 5, column 5']
    border = found_groups['border']
    assert [border.names[g] for g in border.group] == [
        '0% to 5%', '5% to 10%', '30% to 50%', '0% to 5%']
    crowding = found_groups['crowding']
    assert [crowding.names[g] for g in crowding.group] == [
        '1', '1', 'none', 'none']
    assert counts(crowding) == [2, 2, 0, 0]
    assert found_groups['size'].group.tolist() == [0] * 4
    share = found(matches, 4)
    assert share.tolist() == [1, 0, 0, 1]
    weights = np.array([[1, 1], [2, 0]])
    recall = recall_by_group(objects, crowding, share, weights)
    np.testing.assert_array_equal(
        recall, [[50, 50, np.nan, np.nan], [0, 50, np.nan, np.nan]])


def test_recall_is_that_of_all_classes_together(tmp_path):
    write(tmp_path, CONTENT, run=perturbed(CONTENT, 3))
    objects = read_objects(str(tmp_path / 'annotations.json'))
    matches = match(objects, read_detections(
        str(tmp_path / 'run.json'), objects))
    share = found(matches, len(objects.image))
    right = sum(int(c.found[0].sum()) for c in matches.classes)
    assert share[~objects.crowd].sum() * 10 == pytest.approx(right)


def test_images_of_every_shape_are_in_one_group():
    class Sizes:
        image_sizes = np.array([[100, 50], [100, 100], [100, 130], [100, 200],
                                [np.nan, np.nan]])
    weights = aspect_weights(Sizes)
    assert sum(weights.values()).tolist() == [1, 1, 1, 1, 0]


def test_share_of_padding():
    same = np.array([[480, 640]] * 4)
    assert share_of_padding(same, (1333, 800), 2) == 0
    mixed = np.array([[400, 800], [800, 400]])
    assert share_of_padding(mixed, (800, 800), 1) == 0
    assert share_of_padding(mixed, (800, 800), 2) == pytest.approx(0.5)
    assert share_of_padding(mixed[:1], (800, 800), 1, 300) == pytest.approx(
        1 - 800 * 400 / (900 * 600))
