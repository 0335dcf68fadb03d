"""The files that a test leaves in its work dir."""
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from mmdet.datasets.api_wrappers import COCO, COCOeval
from mmdet.evaluation import CocoMetric
from mmengine.evaluator import BaseMetric, Evaluator

from mmpe.engine.results import ResultFiles

SAMPLE = Path(__file__).parents[1] / 'data' / 'coco_sample'
ANN_FILE = str(SAMPLE / 'annotations_train16.json')


class Speed(BaseMetric):
    default_prefix = 'speed'

    def process(self, data_batch, data_samples):
        self.results.extend(data_samples)

    def compute_metrics(self, results):
        return dict(fps=np.float32(12.5), worst=float('nan'), images=['a'])


@pytest.fixture(scope='module')
def coco():
    return COCO(ANN_FILE)


@pytest.fixture
def runner(tmp_path, coco):
    """As far as results are concerned."""

    def make(*metrics):
        (tmp_path / 'log').mkdir(exist_ok=True)
        evaluator = Evaluator(list(metrics))
        names = [cat['name'] for cat in coco.dataset['categories']]
        evaluator.dataset_meta = dict(classes=names)
        return SimpleNamespace(
            work_dir=str(tmp_path),
            log_dir=str(tmp_path / 'log'),
            test_dataloader=SimpleNamespace(dataset=coco.dataset['images']),
            test_evaluator=evaluator)

    return make


def predictions(coco, detect=True, masks=False):
    """Each second object of each image, a little beside where it is."""
    labels = {cat_id: i for i, cat_id in enumerate(coco.get_cat_ids())}
    for image in coco.dataset['images']:
        found = coco.imgToAnns[image['id']][::2] if detect else []
        x, y, w, h = torch.tensor([ann['bbox'] for ann in found]).reshape(
            -1, 4).unbind(1)
        instances = dict(
            bboxes=torch.stack([x + 0.1 * w, y, x + w, y + h], 1),
            scores=torch.linspace(0.9, 0.1, len(found)),
            labels=torch.tensor([labels[ann['category_id']] for ann in found]))
        if masks:
            instances['masks'] = torch.zeros(
                len(found), image['height'], image['width'], dtype=torch.bool)
        yield dict(
            img_id=image['id'],
            ori_shape=(image['height'], image['width']),
            pred_instances=instances)


def evaluate(runner, samples):
    """Test with these predictions and save; return the metrics."""
    files = ResultFiles(runner, 'configs/detr_peg.py', 'epoch_7.pth')
    runner.test_evaluator.process(list(samples))
    metrics = runner.test_evaluator.evaluate(
        len(runner.test_dataloader.dataset))
    files.save(metrics)
    return metrics


def load(path):
    return json.loads(path.read_text(), parse_constant=pytest.fail)


def test_metrics_are_those_of_the_predictions_to_the_last_digit(
        runner, coco, tmp_path):
    returned = evaluate(
        runner(CocoMetric(ANN_FILE)), predictions(coco))
    evaluation = COCOeval(
        coco, coco.loadRes(str(tmp_path / 'predictions.bbox.json')), 'bbox')
    evaluation.params.maxDets = [100, 300, 1000]
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()

    saved = load(tmp_path / 'metrics.json')
    names = ('mAP', 'mAP_50', 'mAP_75', 'mAP_s', 'mAP_m', 'mAP_l')
    for name, value in zip(names, evaluation.stats):
        assert saved[f'coco/bbox_{name}'] == value
    assert saved['coco/bbox_mAP'] != round(saved['coco/bbox_mAP'], 3)
    assert returned.items() <= saved.items()
    assert saved['config'] == 'detr_peg'
    assert saved['checkpoint'] == 'epoch_7.pth'
    assert saved['num_images'] == 16
    assert saved['num_detections'] == len(
        load(tmp_path / 'predictions.bbox.json'))
    # Moved, not copied: for COCO they are large.
    assert not list((tmp_path / 'log').iterdir())


def test_evaluator_of_the_user_stays_as_it_is(runner, coco, tmp_path):
    (tmp_path / 'mine').mkdir()
    prefix = str(tmp_path / 'mine' / 'some')
    metrics = [
        Speed(),
        CocoMetric(
            ANN_FILE, metric=['bbox', 'proposal'], outfile_prefix=prefix,
            classwise=True, prefix='all'),
        CocoMetric(ANN_FILE, metric_items=['mAP_50'], prefix='few'),
    ]
    evaluate(runner(*metrics), predictions(coco))
    assert metrics[1].outfile_prefix == prefix
    assert metrics[2].outfile_prefix is None
    assert load(tmp_path / 'mine' / 'some.bbox.json') == load(
        tmp_path / 'predictions.bbox.json')
    saved = load(tmp_path / 'metrics.json')
    assert saved['speed/fps'] == 12.5
    assert saved['speed/worst'] is None
    assert saved['speed/images'] == ['a']
    assert saved['few/bbox_mAP_50'] == saved['all/bbox_mAP_50']
    assert 'few/bbox_mAP' not in saved
    assert 0 < saved['all/AR@100'] < 1
    assert saved['all/AR@100'] != round(saved['all/AR@100'], 3)
    assert 0 <= saved['all/person_precision'] <= 1
    assert saved['all/hair drier_precision'] is None


def test_prefix_of_the_user_may_be_ours(runner, coco, tmp_path):
    metric = CocoMetric(
        ANN_FILE, outfile_prefix=str(tmp_path / 'predictions'))
    evaluate(runner(metric), predictions(coco))
    assert load(tmp_path / 'predictions.bbox.json')


def test_masks_have_a_file_too(runner, coco, tmp_path):
    metric = CocoMetric(ANN_FILE, metric=['bbox', 'segm'])
    evaluate(runner(metric), predictions(coco, masks=True))
    boxes = load(tmp_path / 'predictions.bbox.json')
    masks = load(tmp_path / 'predictions.segm.json')
    assert len(boxes) == len(masks) > 0
    saved = load(tmp_path / 'metrics.json')
    assert saved['coco/segm_mAP'] == 0 < saved['coco/bbox_mAP']

    evaluate(runner(CocoMetric(ANN_FILE)), predictions(coco))
    assert not (tmp_path / 'predictions.segm.json').exists()


def test_a_model_that_detects_nothing_scores_zero(runner, coco, tmp_path):
    metric = CocoMetric(ANN_FILE, classwise=True)
    evaluate(runner(metric), predictions(coco, detect=False))
    assert load(tmp_path / 'predictions.bbox.json') == []
    saved = load(tmp_path / 'metrics.json')
    assert saved['num_detections'] == 0
    assert saved['coco/bbox_mAP'] == saved['coco/bbox_mAP_50'] == 0
    assert saved['coco/person_precision'] == 0


def test_without_metrics_there_is_no_metrics_file(runner, coco, tmp_path):
    (tmp_path / 'metrics.json').write_text('{"of": "another test"}')
    metric = CocoMetric(
        ANN_FILE, format_only=True, outfile_prefix=str(tmp_path / 'out'))
    evaluate(runner(metric), predictions(coco))
    assert load(tmp_path / 'predictions.bbox.json')
    assert not (tmp_path / 'metrics.json').exists()


def test_metrics_that_are_not_of_coco(runner, coco, tmp_path):
    evaluate(runner(Speed()), predictions(coco))
    assert load(tmp_path / 'metrics.json') == {
        'speed/fps': 12.5,
        'speed/worst': None,
        'speed/images': ['a'],
        'config': 'detr_peg',
        'checkpoint': 'epoch_7.pth',
        'num_images': 16
    }


def test_mmdetection_is_left_as_it_was(runner, coco):
    before = [vars(cls).copy() for cls in (COCO, COCOeval)]
    evaluate(runner(CocoMetric(ANN_FILE)), predictions(coco))
    assert [dict(vars(cls)) for cls in (COCO, COCOeval)] == before
