"""Logs of trainings."""
import pytest
from work_dirs import QUICKSTART, add_training, config

from mmpe.evaluation.training_log import read_training_log

FIRST = """\
{"lr": 0.001, "loss": 12.4, "time": 0.04, "memory": 90, "epoch": 1, \
"iter": 1, "step": 1}
{"lr": 0.001, "loss": 10.4, "time": 0.03, "memory": 95, "epoch": 1, \
"iter": 4, "step": 4}
{"coco/bbox_mAP": 0.1, "coco/bbox_mAP_s": -1.0, "data_time": 0.001, \
"time": 0.006, "step": 1}
{"lr": 0.001, "loss": 9.9, "time": 0.05, "memory": 95, "epoch": 2, \
"iter": 5, "step": 5}
"""
RESUMED = """\
{"lr": 0.001, "loss": 9.5, "time": 0.02, "memory": 93, "epoch": 2, \
"iter": 5, "step": 5}
{"lr": 0.001, "loss": 8.5, "time": 0.02, "memory": 93, "epoch": 2, \
"iter": 8, "step": 8}
{"coco/bbox_mAP": 0.3, "coco/segm_mAP": 0.2, "step": 2}
"""


@pytest.fixture(scope='module')
def cfg():
    return config()


def test_a_resumed_training_is_one(tmp_path, cfg):
    add_training(tmp_path / '1', cfg, QUICKSTART)  # began anew after it
    add_training(tmp_path / '2', cfg, FIRST)
    add_training(tmp_path / '3', cfg, RESUMED, resume=True)
    log = read_training_log(tmp_path)
    assert [(p.step, p.epoch, p.loss) for p in log.losses] == [
        (1, 0.25, 12.4), (4, 1, 10.4), (5, 1.25, 9.5), (8, 2, 8.5)]
    assert [(v.step, v.epoch, v.ap()) for v in log.validations] == [
        (4, 1, 0.1), (8, 2, 0.3)]
    assert log.validations[1].ap('segm') == 0.2
    assert log.validations[0].ap('segm') is None
    assert log.seconds_per_iteration == 0.025 and log.memory == 95
    assert log.epochs_to_reach(0.1) == 1 and log.epochs_to_reach(0.2) == 2
    assert log.epochs_to_reach(0.4) is None
    assert log.epochs_to_reach(0.1, 'segm') == 2


def test_a_log_cut_off_mid_line(tmp_path, cfg):
    add_training(tmp_path / '1', cfg, FIRST[:-40] + '\n[1]\nnull\nno json\n'
                 '{"loss": 3.0}\n{"loss": "x", "step": 2}\n{"step": true}\n')
    log = read_training_log(tmp_path)
    assert [p.step for p in log.losses] == [1, 4]
    assert log.not_finite == [2]


def test_losses_that_are_not_finite(tmp_path, cfg):
    text = FIRST.replace('12.4', 'NaN').replace('9.9', 'Infinity')
    add_training(tmp_path / '1', cfg, text.replace('0.1,', 'NaN,'))
    log = read_training_log(tmp_path)
    assert [p.loss for p in log.losses] == [10.4]
    assert log.not_finite == [1, 5]
    assert log.validations[0].ap() is None


def test_a_ground_truth_without_objects_has_no_ap(tmp_path, cfg):
    add_training(tmp_path / '1', cfg, FIRST.replace('0.1,', '-1.0,'))
    assert read_training_log(tmp_path).validations[0].ap() is None


def test_a_training_by_iterations(tmp_path, cfg):
    """Where MMEngine counts data loaders gone through for epochs."""
    text = ''.join(f'{{"loss": {9 - i}, "iter": {i}, "step": {i}}}\n'
                   f'{{"coco/bbox_mAP": 0.{i}, "step": 0}}\n'
                   for i in (2, 4))
    add_training(tmp_path / '1', cfg, text)
    log = read_training_log(tmp_path)
    assert [(p.step, p.epoch) for p in log.losses] == [(2, None), (4, None)]
    assert [(v.step, v.epoch, v.ap()) for v in log.validations] == [
        (2, None, 0.2), (4, None, 0.4)]


def test_validations_logged_by_iteration(tmp_path, cfg):
    add_training(tmp_path / '1', cfg,
                 FIRST.replace('0.006, "step": 1', '0.006, "step": 4'))
    log = read_training_log(tmp_path)
    assert [(v.step, v.epoch) for v in log.validations] == [(4, 1)]


def test_no_log_is_an_empty_one(tmp_path):
    log = read_training_log(tmp_path)
    assert log.losses == log.validations == log.not_finite == []
    assert log.seconds_per_iteration is log.memory is None
    assert log.epochs_to_reach(0.) is None
