"""When checkpoints are written and deleted."""
from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.hooks import CheckpointHook, Hook
from mmengine.runner import Runner
from test_checkpoint_classes import Accuracy, Model, Points

from mmpe.engine import allow_checkpoint_classes
from mmpe.engine.checkpoint_hook import (WholeCheckpointHook,
                                         save_whole_checkpoints)


class Score(Accuracy):
    """Better in each epoch."""
    epochs = 0

    def compute_metrics(self, results):
        self.epochs += 1
        return dict(accuracy=self.epochs)


class Watch(Hook):
    """Notes which checkpoints are there while one is being written."""
    priority = 'LOWEST'

    def __init__(self):
        self.seen = []

    def before_save_checkpoint(self, runner, checkpoint):
        self.seen.append(names(runner.work_dir))


def names(folder):
    return sorted(path.name for path in Path(folder).glob('*.pth*'))


def make_runner(work_dir, watch, max_epochs, **kwargs):
    loader = dict(
        dataset=Points(),
        batch_size=2,
        collate_fn=dict(type='default_collate'),
        sampler=dict(type='DefaultSampler', shuffle=False))
    return Runner(
        model=Model(),
        work_dir=str(work_dir),
        experiment_name=f'{work_dir.name}_{max_epochs}',
        train_dataloader=loader,
        train_cfg=dict(by_epoch=True, max_epochs=max_epochs, val_interval=1),
        val_dataloader=loader,
        val_cfg=dict(),
        val_evaluator=[Score()],
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.1)),
        default_hooks=dict(
            checkpoint=WholeCheckpointHook(
                interval=1,
                max_keep_ckpts=2,
                save_best='test/accuracy',
                rule='greater')),
        custom_hooks=[watch],
        log_level='ERROR',
        **kwargs)


def test_old_ones_go_after_the_new_one_is_whole(tmp_path):
    watch = Watch()
    make_runner(tmp_path, watch, 3).train()
    # Third epoch: saved, its best saved, saved again with the best's score.
    assert watch.seen[-3:] == [
        ['best_test_accuracy_epoch_2.pth', 'epoch_1.pth', 'epoch_2.pth'],
        ['best_test_accuracy_epoch_2.pth', 'epoch_2.pth', 'epoch_3.pth'],
        [
            'best_test_accuracy_epoch_2.pth', 'best_test_accuracy_epoch_3.pth',
            'epoch_2.pth', 'epoch_3.pth'
        ],
    ]
    at_end = ['best_test_accuracy_epoch_3.pth', 'epoch_2.pth', 'epoch_3.pth']
    assert names(tmp_path) == at_end
    assert (tmp_path / 'last_checkpoint').read_text() == str(
        tmp_path / 'epoch_3.pth')


def test_next_run_goes_on_and_removes_what_was_left(tmp_path):
    make_runner(tmp_path, Watch(), 2).train()
    (tmp_path / 'epoch_3.pth.part').touch()
    (tmp_path / 'last_checkpoint.part').touch()
    allow_checkpoint_classes()
    make_runner(tmp_path, Watch(), 3, resume=True).train()
    assert not list(tmp_path.glob('*.part'))
    assert {'epoch_2.pth', 'epoch_3.pth'} <= set(names(tmp_path))


def hook_of(**hook):
    cfg = Config(dict(default_hooks=dict(checkpoint=hook)))
    save_whole_checkpoints(cfg)
    return cfg.default_hooks.checkpoint


def test_hook_of_mmengine_is_replaced():
    hook = hook_of(type='CheckpointHook', interval=5)
    assert hook.type.endswith('.WholeCheckpointHook') and hook.interval == 5
    assert hook_of(type=CheckpointHook).type == hook.type
    cfg = Config(dict())
    save_whole_checkpoints(cfg)
    assert cfg.default_hooks.checkpoint == dict(type=hook.type, interval=1)


@pytest.mark.parametrize('hook', [
    dict(type='MyCheckpointHook'),
    dict(type='CheckpointHook', out_dir='s3://somewhere'),
    dict(type='CheckpointHook', backend_args=dict(backend='petrel')),
])
def test_other_hooks_stay(hook):
    assert hook_of(**hook) == hook
