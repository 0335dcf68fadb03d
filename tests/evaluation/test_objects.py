"""Annotation files and detections that are not as they should be."""
import copy
import json

import numpy as np
import pytest
from coco_files import SAMPLE, perturbed, pycocotools, stats, write

from mmpe.engine.usage_error import UsageError
from mmpe.evaluation.average_precision import average_precisions
from mmpe.evaluation.matching import match
from mmpe.evaluation.detections import read_detections
from mmpe.evaluation.objects import read_objects

CONTENT = json.loads(SAMPLE.read_text())


def read(folder, name='run', iou_type='bbox'):
    objects = read_objects(str(folder / 'annotations.json'))
    return objects, read_detections(
        str(folder / f'{name}.json'), objects, iou_type)


def message(function, *args):
    with pytest.raises(UsageError) as error:
        function(*args)
    assert '\n' not in str(error.value)
    return str(error.value)


def test_ids_as_text(tmp_path):
    """Of images and categories, in either file."""
    found = perturbed(CONTENT, 1)
    expected = stats(pycocotools(CONTENT, found))
    texts = copy.deepcopy(CONTENT)
    for key, names in dict(images=['id'], categories=['id'],
                           annotations=['image_id', 'category_id']).items():
        for item in texts[key]:
            item.update({name: str(item[name]) for name in names})
    for folder, content in ('a', texts), ('b', CONTENT):
        own = [dict(d, image_id=str(d['image_id'])) for d in found]
        write(tmp_path / folder, content, run=own)
        objects, detections = read(tmp_path / folder)
        ap = average_precisions(match(objects, detections)).mean('AP')[0]
        assert ap == pytest.approx(expected['AP'])


def test_unknown_ids_are_named(tmp_path):
    found = perturbed(CONTENT, 1)
    for key, kind in ('image_id', 'image'), ('category_id', 'category'):
        wrong = copy.deepcopy(found)
        wrong[3][key] = 987654
        write(tmp_path, CONTENT, run=wrong)
        line = message(read, tmp_path)
        assert '987654' in line and kind in line
        assert 'annotations.json' in line and 'run.json' in line


def test_ids_as_real_numbers(tmp_path):
    """As pandas writes them."""
    found = [dict(d, image_id=float(d['image_id']))
             for d in perturbed(CONTENT, 1)]
    write(tmp_path, CONTENT, run=found)
    assert len(read(tmp_path)[1].score) == len(found)


def test_classes_that_count(tmp_path):
    """A model of some of the file's classes, as CocoMetric takes it."""
    names = [c['name'] for c in CONTENT['categories']]
    ids = {c['id'] for c in CONTENT['categories'] if c['name'] == 'person'}
    found = perturbed(CONTENT, 1)
    write(tmp_path, CONTENT, run=found)
    path = str(tmp_path / 'annotations.json')
    objects = read_objects(path, ('person', ))
    detections = read_detections(str(tmp_path / 'run.json'), objects)
    expected = pycocotools(
        dict(CONTENT, categories=[dict(id=i, name='') for i in ids],
             annotations=[a for a in CONTENT['annotations']
                          if a['category_id'] in ids]),
        [d for d in found if d['category_id'] in ids])
    ap = average_precisions(match(objects, detections)).mean('AP')[0]
    assert ap == pytest.approx(stats(expected)['AP'])
    assert objects.class_names == ['person']
    assert '1 of 80 classes count' in objects.notes[0]
    assert read_objects(path, names).notes == []


def test_no_detections(tmp_path):
    write(tmp_path, CONTENT, run=[])
    precisions = average_precisions(match(*read(tmp_path)))
    there = read(tmp_path)[0].counts > 0
    values = precisions.by_class['AP'][0]
    assert (values[there] == 0).all()
    assert np.isnan(values[~there]).all()
    assert precisions.mean('AP')[0] == 0
    write(tmp_path, CONTENT, masks=[])
    assert average_precisions(match(
        *read(tmp_path, 'masks', 'segm'))).mean('AP')[0] == 0


def test_no_objects(tmp_path):
    content = dict(CONTENT, annotations=[])
    found = perturbed(CONTENT, 1)
    write(tmp_path, content, run=found)
    precisions = average_precisions(match(*read(tmp_path)))
    assert np.isnan(precisions.mean('AP')[0])
    assert np.isnan(precisions.mean('AR100')[0])


def test_no_areas(tmp_path):
    content = copy.deepcopy(CONTENT)
    for ann in content['annotations']:
        del ann['area']
    write(tmp_path, content, run=perturbed(CONTENT, 2))
    objects, detections = read(tmp_path)
    assert 'no area' in objects.notes[0]
    with_boxes = copy.deepcopy(content)
    for ann in with_boxes['annotations']:
        ann['area'] = ann['bbox'][2] * ann['bbox'][3]
    expected = stats(pycocotools(with_boxes, perturbed(CONTENT, 2)))
    precisions = average_precisions(match(objects, detections))
    for metric, value in expected.items():
        np.testing.assert_allclose(precisions.mean(metric)[0], value)


def test_class_names_of_several_ids(tmp_path):
    content = copy.deepcopy(CONTENT)
    for category in content['categories'][:2]:
        category['name'] = 'thing'
    write(tmp_path, content, run=[])
    objects, _ = read(tmp_path)
    ids = [c['id'] for c in content['categories'][:2]]
    assert objects.class_names[:2] == [f'thing (id {id})' for id in ids]
    assert "'thing'" in objects.notes[0]


@pytest.mark.parametrize('content, said', [
    ('', 'is no JSON'),
    ('{"images": [', 'or cut off'),
    ('[]', 'no annotation file'),
    ('{"images": [], "annotations": [], "categories": []}', 'no annotation'),
    ('{"images": [{"id": 1}, {"id": 1}], "annotations": [], "categories": []}',
     'image id 1 is there twice'),
    ('{"images": [{}], "annotations": [], "categories": []}',
     'each image needs an id'),
    ('{"images": [{"id": 1}], "categories": [{"id": 1}], "annotations": '
     '[{"image_id": 2, "category_id": 1, "bbox": [0, 0, 1, 1]}]}',
     "another image or category, or a size is no number: '2'"),
    ('{"images": [{"id": 1}], "categories": [{"id": 1}], "annotations": '
     '[{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1]}]}', 'bbox'),
])
def test_no_annotation_file(tmp_path, content, said):
    path = tmp_path / 'annotations.json'
    path.write_text(content)
    line = message(read_objects, str(path))
    assert said in line and str(path) in line
    assert 'cannot read' in message(read_objects, str(tmp_path / 'none.json'))


@pytest.mark.parametrize('found, said', [
    ({}, 'no list of detections'),
    ([1], 'needs image_id'),
    ([dict(image_id=1, score=1)], 'needs image_id, category_id'),
    ([dict(image_id=1, category_id=1, bbox=[0, 0, 1, 1], score=None)],
     'not finite'),
    ([dict(image_id=1, category_id=1, bbox=[0, 1], score=1)], 'bbox'),
    ([dict(image_id=1, category_id=1, bbox=[0, 0, 1, 1],
           score=float('nan'))], 'not finite'),
])
def test_no_detections_file(tmp_path, found, said):
    content = dict(images=[dict(id=1)], categories=[dict(id=1)],
                   annotations=[])
    write(tmp_path, content, run=found)
    line = message(read, tmp_path)
    assert said in line and 'run.json' in line
