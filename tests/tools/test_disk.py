"""A disk that refuses to write stops a run with one line and costs nothing."""
import resource
from pathlib import Path

import forked_runs
import torch
from mmengine.hooks import Hook

from mmpe.engine import allow_checkpoint_classes

CONFIG = f"""
_base_ = {str(forked_runs.TINY)!r}
custom_hooks = [dict(type='test_disk.FillDisk', epoch=1)]
train_cfg = dict(max_epochs=2)
default_hooks = dict(checkpoint=dict(max_keep_ckpts=1))
"""


class FillDisk(Hook):
    """From the end of an epoch on no file can be as large as a checkpoint."""

    def __init__(self, epoch):
        self.epoch = epoch

    def after_train_epoch(self, runner):
        if runner.epoch == self.epoch:
            resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))


def train(folder, work_dir):
    config = folder / 'full.py'
    config.write_text(CONFIG)
    jobs = forked_runs.start(1, folder / 'log', 'train.py', config,
                             '--work-dir', work_dir)
    jobs[0].join(120)
    said = (folder / 'log').read_text()
    assert jobs[0].exitcode == 2, said
    assert 'Traceback' not in said
    return said.splitlines()[-1]


def test_full_disk(tmp_path):
    work_dir = tmp_path / 'run'
    last_line = train(tmp_path, work_dir)
    assert last_line == ('train.py: error: cannot write '
                         f'{work_dir / "epoch_2.pth"}: File too large')
    assert [path.name for path in work_dir.glob('*.pth*')] == ['epoch_1.pth']
    assert Path((work_dir / 'last_checkpoint').read_text()).name == (
        'epoch_1.pth')
    allow_checkpoint_classes()
    assert torch.load(work_dir / 'epoch_1.pth')['meta']['epoch'] == 1


def test_work_dir_that_cannot_be_one(tmp_path):
    (tmp_path / 'file').touch()
    last_line = train(tmp_path, tmp_path / 'file' / 'run')
    assert last_line == ('train.py: error: cannot write '
                         f'{tmp_path / "file" / "run"}: Not a directory')
