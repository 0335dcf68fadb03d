"""AP equals pycocotools', of images as they are and of resamples."""
import copy
import json
from collections import Counter

import numpy as np
import pytest
from coco_files import SAMPLE, by_class, perturbed, pycocotools, stats, write
from hypothesis import given
from hypothesis import strategies as st

from mmpe.evaluation.average_precision import average_precisions
from mmpe.evaluation.compare import draw_images
from mmpe.evaluation.matching import match
from mmpe.evaluation.detections import read_detections
from mmpe.evaluation.objects import read_objects

CONTENT = json.loads(SAMPLE.read_text())


def measured(folder, name='run', iou_type='bbox'):
    objects = read_objects(str(folder / 'annotations.json'))
    found = read_detections(str(folder / f'{name}.json'), objects, iou_type)
    return match(objects, found)


def check(precisions, result, row=0):
    for metric, expected in stats(result).items():
        np.testing.assert_allclose(
            precisions.mean(metric)[row], expected, atol=1e-6, err_msg=metric)
    np.testing.assert_allclose(
        precisions.by_class['AP'][row], by_class(result), atol=1e-6)


@pytest.mark.parametrize('iou_type', ['bbox', 'segm'])
@pytest.mark.parametrize('seed', range(3))
def test_real_objects(tmp_path, iou_type, seed):
    found = perturbed(CONTENT, seed, masks=iou_type == 'segm')
    write(tmp_path, CONTENT, run=found)
    check(average_precisions(measured(tmp_path, iou_type=iou_type)),
          pycocotools(CONTENT, found, iou_type))


def test_sample_has_what_is_hard():
    crowds = sum(a['iscrowd'] for a in CONTENT['annotations'])
    areas = np.array([a['area'] for a in CONTENT['annotations']])
    assert crowds > 0
    assert (areas < 32**2).any() and (areas > 96**2).any()
    used = {a['category_id'] for a in CONTENT['annotations']}
    assert len(used) < len(CONTENT['categories'])


boxes = st.tuples(*[st.integers(0, 5)] * 2, *[st.integers(1, 5)] * 2)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2), boxes,
                       st.booleans()), max_size=12),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 2), boxes,
                       st.integers(0, 3)), max_size=25))
def test_any_objects(tmp_path_factory, objects, found):
    """Small grids: many equal overlaps, scores and crowds."""
    content = dict(
        images=[dict(id=i, height=99, width=99) for i in (1, 2, 3)],
        categories=[dict(id=i, name=str(i)) for i in (1, 2)],
        annotations=[
            dict(id=n + 1, image_id=image, category_id=label,
                 bbox=[10. * v for v in box], iscrowd=int(crowd),
                 area=100. * box[2] * box[3])
            for n, (image, label, box, crowd) in enumerate(objects)
        ])
    found = [dict(image_id=image, category_id=label, score=score / 4,
                  bbox=[10. * v for v in box])
             for image, label, box, score in found]
    folder = write(tmp_path_factory.mktemp('any'), content, run=found)
    precisions = average_precisions(measured(folder))
    if not found:
        assert all(v in (0., 0) or np.isnan(v)
                   for v in precisions.by_class['AP'][0])
        return
    check(precisions, pycocotools(content, found))


def drawn_the_slow_way(content, found, weights):
    """A data set with each image as often as it was drawn, ids anew."""
    images, anns, copies = [], [], []
    for image, weight in zip(
            sorted(content['images'], key=lambda i: i['id']), weights):
        for _ in range(weight):
            number = len(images) + 1
            images.append(dict(image, id=number))
            for items, out in (content['annotations'], anns), (found, copies):
                for item in items:
                    if item['image_id'] == image['id']:
                        out.append(dict(copy.deepcopy(item), image_id=number))
    for number, ann in enumerate(anns):
        ann['id'] = number + 1
    return dict(content, images=images, annotations=anns), copies


def test_a_resample_is_a_data_set_with_images_again(tmp_path):
    found = perturbed(CONTENT, 5)
    # Equal scores in an image would come in turns in its copies; those of
    # several images stay equal.
    counts = Counter()
    for d in found:
        counts[d['image_id']] += 1
        d['score'] += 1e-5 * counts[d['image_id']]
    write(tmp_path, CONTENT, run=found)
    weights = draw_images(len(CONTENT['images']), 24, seed=1)
    precisions = average_precisions(measured(tmp_path), weights, batch=7)
    whole = by_class(pycocotools(CONTENT, found))
    vanished = 0
    for row, weight in enumerate(weights):
        result = pycocotools(*drawn_the_slow_way(CONTENT, found, weight))
        check(precisions, result, row)
        vanished += (np.isnan(by_class(result)) & ~np.isnan(whole)).any()
    assert vanished > 10


def test_only_the_first_hundred_detections_count(tmp_path):
    ann = dict(id=1, image_id=1, category_id=1, bbox=[0., 0., 50., 50.],
               area=2500., iscrowd=0)
    content = dict(images=[dict(id=1, height=99, width=99)],
                   categories=[dict(id=1, name='a')], annotations=[ann])
    for wrong, expected in (99, 0.01), (100, 0.):
        found = [dict(image_id=1, category_id=1, bbox=[60., 60., 9., 9.],
                      score=0.9)] * wrong + [
                          dict(image_id=1, category_id=1, bbox=ann['bbox'],
                               score=0.1)]
        folder = write(tmp_path / str(wrong), content, run=found)
        assert average_precisions(measured(folder)).mean('AP')[0] == \
            pytest.approx(expected)


def test_memory_of_batches_does_not_matter(tmp_path):
    write(tmp_path, CONTENT, run=perturbed(CONTENT, 6))
    matches = measured(tmp_path)
    weights = draw_images(len(CONTENT['images']), 10, seed=2)
    told = []
    whole = average_precisions(matches, weights)
    parts = average_precisions(matches, weights, batch=3,
                               progress=told.append)
    np.testing.assert_array_equal(whole.by_threshold, parts.by_threshold)
    assert told == [3, 3, 3, 1]
