"""What is wrong with an annotation file is one line."""
import json

import pytest
from mmdet.datasets import CocoDataset
from mmdet.datasets.api_wrappers import COCO

from mmpe.engine.annotation_file import CheckedCOCO, checked_files
from mmpe.engine.usage_error import UsageError

CLASSES = ('person', 'cat', 'airplane')


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'train.json'


@pytest.fixture
def content():
    return dict(
        images=[
            dict(id=i, file_name=f'{i}.jpg', height=4, width=4)
            for i in (7, 8)
        ],
        categories=[
            dict(id=id, name=name) for id, name in zip((1, 17, 5), CLASSES)
        ],
        annotations=[
            dict(
                id=1, image_id=7, category_id=17, bbox=[0, 0, 2, 2], area=4,
                iscrowd=0)
        ])


def read(path, classes=CLASSES):
    return CheckedCOCO(str(path)).get_cat_ids(cat_names=classes)


def message(*args):
    with pytest.raises(UsageError) as error:
        read(*args)
    assert '\n' not in str(error.value)
    return str(error.value)


def test_what_fits(path, content):
    path.write_text(json.dumps(content))
    assert read(path) == [1, 17, 5]
    assert read(path, ('cat', 'airplane')) == [17, 5]
    del content['annotations']  # of images to test on
    path.write_text(json.dumps(content))
    assert read(path) == [1, 17, 5]


def test_only_inside_the_context(path, content):
    path.write_text(json.dumps(content))
    with checked_files() as images_of:
        assert CocoDataset.COCOAPI is CheckedCOCO
        read(path)
        assert images_of == {str(path): {7, 8}}
    assert CocoDataset.COCOAPI is COCO
    assert not CheckedCOCO.images_of


def test_no_such_file(path, tmp_path):
    path.write_text('')
    assert message(tmp_path / 'trian.json') == (
        f'annotation file {tmp_path}/trian.json: no such file. Did you mean '
        'train.json?')
    assert message(tmp_path / 'coco' / '2017' / 'train.json').endswith(
        f'no such folder: {tmp_path}/coco')
    assert message(tmp_path).endswith('Is a directory')


@pytest.mark.parametrize('text, said', [
    (b'', 'is not JSON'),
    (b'{"images": [', 'is not JSON'),
    (b'\xff\xd8\xff\xe0', 'is not JSON'),
    (b'[1]', "is not an object"),
    (b'{}', 'has no images'),
])
def test_file_that_is_something_else(path, text, said):
    path.write_bytes(text)
    line = message(path)
    assert said in line
    assert str(path) in line


def _texts(content):
    for image in content['images']:
        image['id'] = str(image['id'])
    for one in content['annotations']:
        one['image_id'] = str(one['image_id'])


def _set(part, key, value):
    return lambda content: content[part][0].update({key: value})


def _drop(part, key):
    return lambda content: content[part][0].pop(key)


@pytest.mark.parametrize('spoil, said', [
    (lambda c: c.update(images=[]), 'has no images'),
    (lambda c: c.pop('categories'), 'has no categories'),
    (_texts, 'without quotation marks'),
    (_set('categories', 'id', '1'), "a category with the id '1'"),
    (_set('annotations', 'image_id', '5'), "image_id is '5'; there is no"),
    (_set('annotations', 'image_id', 5), 'image_id is 5; there is no such'),
    (_set('annotations', 'category_id', 999), 'category_id is 999'),
    (_drop('annotations', 'category_id'), 'category_id is None'),
    (_drop('annotations', 'bbox'), 'an annotation without bbox'),
    (_drop('annotations', 'id'), 'an annotation without id'),
    (_drop('images', 'height'), 'an image without height'),
    (_set('categories', 'name', 'preson'), "no category 'person'"),
    (_set('categories', 'name', 'preson'), 'Did you mean preson?'),
    (lambda c: c['categories'].pop(), "no category 'airplane'"),
    (lambda c: c['categories'].reverse(), 'in another order'),
    (lambda c: c['categories'].append(dict(id=999, name='cat')), 'one twice'),
])
def test_content_that_does_not_fit(path, content, spoil, said):
    spoil(content)
    path.write_text(json.dumps(content))
    line = message(path)
    assert said in line
    assert str(path) in line


def test_class_without_a_comma(path, content):
    path.write_text(json.dumps(content))
    assert "write one class as classes=('cat', )" in message(path, 'cat')


def test_many_classes_are_one_line(path, content):
    path.write_text(json.dumps(content))
    line = message(path, [f'class {i}' for i in range(80)])
    assert "'class 0', which is one of the dataset's 80 classes (79 more" \
        in line
    assert "It has 'person', 'cat', 'airplane';" in line
