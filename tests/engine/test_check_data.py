"""Data that doesn't fit is one line, before a run starts."""
import json
import shutil
from pathlib import Path

import pytest
from mmengine.config import Config, ConfigDict
from mmengine.runner import Runner

from mmpe.engine.check_data import check_data
from mmpe.engine.usage_error import UsageError

TINY = Path(__file__).parents[1] / 'tools' / 'tiny_detr.py'
SAMPLE = Path(__file__).parents[1] / 'data' / 'coco_sample'
IMAGES = 3


@pytest.fixture(scope='module')
def sample():
    """A few images of the sample, with their annotations."""
    content = json.loads((SAMPLE / 'annotations_train16.json').read_text())
    content['images'] = content['images'][:IMAGES]
    ids = [image['id'] for image in content['images']]
    content['annotations'] = [
        one for one in content['annotations'] if one['image_id'] in ids
    ]
    return json.dumps(content)


@pytest.fixture
def content(sample):
    return json.loads(sample)


@pytest.fixture
def run(tmp_path, content, monkeypatch):
    """Check a run on ``content``, the config and the content being changed."""
    # Nothing here reads them, and each takes a second.
    monkeypatch.setattr(Config, 'pretty_text', '')
    monkeypatch.setattr(Runner, '_log_env', lambda *_: None)
    (tmp_path / 'images').mkdir()
    for image in content['images']:
        shutil.copy(SAMPLE / 'images' / image['file_name'],
                    tmp_path / 'images')

    def check(change=None, *phases, **dataset):
        (tmp_path / 'train.json').write_text(json.dumps(content))
        cfg = Config.fromfile(TINY)
        cfg.merge_from_dict(
            dict(work_dir=str(tmp_path / 'run'), log_level='ERROR',
                 launcher='none'))
        for phase in 'train', 'val', 'test':
            loader = cfg[f'{phase}_dataloader'] = ConfigDict(
                cfg[f'{phase}_dataloader'])
            loader.dataset.update(
                ConfigDict(
                    dict(
                        data_root=f'{tmp_path}/',
                        ann_file='train.json',
                        indices=None) | dataset))
            if phase != 'train':
                cfg[f'{phase}_evaluator'].ann_file = f'{tmp_path}/train.json'
        if change:
            change(cfg)
        runner = Runner.from_cfg(cfg)
        check_data(runner, *(phases or ('train', 'val')))
        return runner

    return check


@pytest.fixture
def message(run):

    def fail(*args, **kwargs):
        with pytest.raises(UsageError) as error:
            run(*args, **kwargs)
        assert '\n' not in str(error.value)
        return str(error.value)

    return fail


def test_what_fits_runs(run):
    runner = run()
    assert len(runner.train_dataloader.dataset) == IMAGES
    assert runner.val_evaluator.metrics[0]._coco_api.file.endswith('json')
    run(None, 'test')


def test_no_such_data_root(message, tmp_path):

    def change(cfg):
        cfg.train_dataloader.dataset.data_root = f'{tmp_path}/coco/2017/'

    line = message(change)
    assert line.endswith(f'no such folder: {tmp_path}/coco')
    assert 'coco/2017/train.json' in line


def test_file_is_checked_for_training_and_for_evaluation(message, content):
    del content['annotations'][0]['iscrowd']
    assert 'train.json has an annotation without iscrowd' in message()
    content['categories'][0]['name'] = 'preson'
    assert "train.json has no category 'person'" in message()


def test_classes_of_metainfo(message, run):

    def classes(*names):

        def change(cfg):
            cfg.model.bbox_head.num_classes = len(names)

        return change, 'train'

    run(*classes('person', 'cat'), metainfo=dict(classes=('person', 'cat')))
    line = message(*classes('person', 'kat'),
                   metainfo=dict(classes=('person', 'kat')))
    assert "'kat'" in line and 'Did you mean cat?' in line
    line = message(*classes('cat'), metainfo=dict(classes='cat'))
    assert "classes=('cat', )" in line


def test_number_of_classes(message):

    def change(cfg):
        cfg.model.bbox_head.num_classes = 3

    line = message(change)
    assert 'num_classes=3' in line
    assert '80 classes' in line


@pytest.mark.parametrize('wrapper', [
    lambda one: dict(type='RepeatDataset', times=2, dataset=one),
    lambda one: dict(type='ConcatDataset', datasets=[one, one]),
    lambda one: dict(
        type='RepeatDataset',
        times=2,
        dataset=dict(type='ClassBalancedDataset', oversample_thr=0.1,
                     dataset=one)),
])
def test_datasets_in_datasets(run, message, tmp_path, wrapper):

    def change(cfg):
        inner = cfg.train_dataloader.dataset
        cfg.train_dataloader.dataset = ConfigDict(wrapper(inner))

    run(change)
    next((tmp_path / 'images').glob('*.jpg')).write_bytes(b'no image')
    dataset = run(change).train_dataloader.dataset
    with pytest.raises(UsageError, match='not an image, or damaged'):
        [dataset[i] for i in range(len(dataset))]

    def change_more(cfg):
        change(cfg)
        cfg.model.bbox_head.num_classes = 3

    assert '80 classes' in message(change_more)


def test_metric_of_other_images(message, content, tmp_path):
    other = dict(content, images=content['images'][1:], annotations=[])
    (tmp_path / 'other.json').write_text(json.dumps(other))

    def change(cfg):
        cfg.val_evaluator.ann_file = f'{tmp_path}/other.json'

    line = message(change)
    assert f'{tmp_path}/other.json' in line
    assert f'{tmp_path}/train.json' in line
    assert '1 only the other' in line


def test_nothing_is_left_to_train_on(message, content):
    content['annotations'] = []
    line = message(filter_cfg=dict(filter_empty_gt=True))
    assert 'train.json' in line and 'filter_empty_gt' in line


def test_config_without_the_phase(message):

    def change(cfg):
        for key in 'dataloader', 'cfg', 'evaluator':
            cfg.pop(f'test_{key}')

    assert 'no test_dataloader' in message(change, 'test')


def test_folder_of_images_that_is_another(message, tmp_path):
    line = message(data_prefix=dict(img='imgs/'))
    assert f'{tmp_path}/imgs/' in line
    assert 'data_prefix' in line


SPOILED = {
    'gone': lambda path: path.unlink(),
    'empty': lambda path: path.write_bytes(b''),
    'text': lambda path: path.write_bytes(b'not found'),
    'cut': lambda path: path.write_bytes(path.read_bytes()[:2000]),
}


@pytest.fixture
def image(tmp_path, run, content):
    """The path of one that isn't the first."""
    return tmp_path / 'images' / content['images'][1]['file_name']


@pytest.fixture(params=SPOILED)
def spoiled(request, image):
    """The path of an image that is no more what it was."""
    SPOILED[request.param](image)
    return image


def _skipping(cfg):
    for phase in 'train', 'test':
        loader = cfg[f'{phase}_dataloader']
        loader.dataset.pipeline[0].ignore_empty = True


def test_image_that_cannot_be_read_is_named(run, spoiled):
    with pytest.raises(UsageError) as error:
        list(run(None, 'train').train_dataloader)
    assert str(error.value).startswith(f'cannot read image {spoiled}: ')
    assert 'ignore_empty=True' in str(error.value)


def test_a_worker_names_it_as_well(run, image):
    image.unlink()

    def change(cfg):
        cfg.train_dataloader.num_workers = 1

    with pytest.raises(UsageError) as error:
        list(run(change, 'train').train_dataloader)
    assert str(error.value).startswith(f'cannot read image {image}: ')


def test_training_skips_it_if_told_to(run, spoiled):
    dataset = run(_skipping, 'train').train_dataloader.dataset
    paths = {dataset[i]['data_samples'].img_path for i in range(IMAGES)}
    assert str(spoiled) not in paths
    assert len(paths) >= IMAGES - 1


def test_test_never_skips(run, spoiled):
    dataset = run(_skipping, 'test').test_dataloader.dataset
    with pytest.raises(UsageError, match='A test stops here') as error:
        [dataset[i] for i in range(IMAGES)]
    assert str(spoiled) in str(error.value)
