"""Checkpoints that cannot be loaded are one line, and run no code."""
import os
import zipfile
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import load_checkpoint
from torch import nn

from mmpe.engine.check_checkpoint import check_weights, read_checkpoint
from mmpe.engine.runner import build_runner
from mmpe.engine.usage_error import UsageError
from mmpe.position import (ImageRPE, LearnedPositionalEncoding,
                           PositionEncodingList, RelativePositionBias)

HOST = dict(embed_dims=8, num_heads=2, num_layers=1)
TINY = Path(__file__).parents[1] / 'tools' / 'tiny_detr.py'


class Other:
    """No class of a checkpoint."""


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'some.pth'


def message(function, *args):
    with pytest.raises(UsageError) as error:
        function(*args)
    assert '\n' not in str(error.value)
    return str(error.value)


def _zip_of_something(path):
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('notes.txt', 'nothing')


def _save(content, **kwargs):
    return lambda path: torch.save(content, path, **kwargs)


def _cut(**kwargs):

    def save(path):
        torch.save(dict(state_dict=dict(a=torch.zeros(999))), path, **kwargs)
        os.truncate(path, path.stat().st_size // 2)

    return save


OLD = dict(_use_new_zipfile_serialization=False)


@pytest.mark.parametrize('write, said', [
    (lambda path: path.write_bytes(b''), 'is empty'),
    (lambda path: path.write_text('<html>Not found</html>'), 'no checkpoint'),
    (lambda path: path.write_text('cut off\nby'), 'no checkpoint'),
    (_zip_of_something, 'is cut off'),
    (_cut(), 'is cut off'),
    (_cut(**OLD), 'is cut off'),
    (_save(Other()), 'it holds test_check_checkpoint.Other'),
    (_save(dict(state_dict={}, meta=Other()), **OLD), 'Other'),
    (_save(dict(meta=print)), 'it holds print'),
    (_save(dict(meta=os.system)), 'system'),
])
@pytest.mark.parametrize('forced', [False, True])
def test_what_cannot_be_read(path, monkeypatch, write, said, forced):
    if forced:
        monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    write(path)
    before = path.read_bytes()
    line = message(read_checkpoint, str(path))
    assert said in line
    assert str(path) in line
    assert path.read_bytes() == before


def test_no_such_file(path):
    assert str(path) in message(read_checkpoint, str(path))


@pytest.mark.parametrize('options', [{}, OLD])
def test_what_can_be_read(path, options):
    torch.save(dict(state_dict=dict(a=torch.ones(2))), path, **options)
    assert read_checkpoint(str(path))['state_dict']['a'].tolist() == [1, 1]


class Run:
    """As much of a runner as is looked at."""

    def __init__(self, work_dir, load_from=None, resume=False):
        self.cfg = dict(load_from=load_from and str(load_from), resume=resume)
        self.work_dir = str(work_dir)
        self.model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))

    def register_hook(self, hook, priority):
        pass


META = dict(epoch=1, iter=2)


@pytest.mark.parametrize('content, complete, resume, said', [
    (torch.zeros(2), False, False, 'holds a Tensor'),
    ([1], False, False, 'holds a list'),
    (dict(model=dict(a=torch.zeros(2))), False, False, 'it has model'),
    (dict(state_dict={}), False, False, 'it has nothing'),
    (dict(state_dict=dict(a=torch.zeros(2))), False, False,
     "lacks 4 of the 4 parameters, such as '0.weight'; it has 'a'"),
    (dict(state_dict={'0.weight': torch.zeros(2, 2)}), True, False,
     "lacks 3 of the 4 parameters, such as '0.bias'"),
    (dict(state_dict={'0.weight': torch.zeros(2, 2)}), False, True,
     'no optimizer'),
    (dict(state_dict={'0.weight': torch.zeros(2, 2)}, optimizer={}), False,
     True, 'no optimizer and meta.epoch'),
    (dict(state_dict={'0.weight': torch.zeros(2, 2)}, optimizer={},
          meta=META), False, True, 'lacks 3'),
])
def test_what_is_of_something_else(path, content, complete, resume, said):
    torch.save(content, path)
    line = message(check_weights, Run(path.parent, path, resume), complete)
    assert said in line
    assert str(path) in line


def test_what_fits(path):
    run = Run(path.parent, path)
    check_weights(Run(path.parent), True)
    torch.save({'module.0.weight': torch.zeros(2, 2)}, path)
    check_weights(run, complete=False)
    torch.save(dict(state_dict=run.model.state_dict()), path)
    check_weights(run, complete=True)


@pytest.mark.parametrize('encoding, other, said', [
    (ImageRPE(**HOST), ImageRPE(ratio=3.5, **HOST), None),
    (ImageRPE(**HOST), ImageRPE(mode='bias', **HOST), 'tables.0.k'),
    (RelativePositionBias(grid=(3, 4), **HOST),
     RelativePositionBias(grid=(5, 4), **HOST), None),
    (LearnedPositionalEncoding(**HOST),
     LearnedPositionalEncoding(row_num_embed=60, **HOST),
     r'row_embed.weight has the shape (60, 4), the model needs (50, 4)'),
])
def test_tables_of_position_encodings(path, encoding, other, said):
    run = Run(path.parent, path)
    # As in a detector, where the list is a module, too.
    own, theirs = (PositionEncodingList([], **HOST) for _ in range(2))
    own.add_module('encoding', encoding)
    theirs.add_module('encoding', other)
    run.model = nn.ModuleDict(dict(encoding=own))
    torch.save(nn.ModuleDict(dict(encoding=theirs)).state_dict(), path)
    if said is None:
        check_weights(run, complete=True)
        load_checkpoint(run.model, str(path), strict=True)
    else:
        assert said in message(check_weights, run, True)


def test_last_checkpoint_of_the_work_dir(path):
    (path.parent / 'last_checkpoint').write_text(str(path))
    path.write_text('cut off')
    line = message(check_weights, Run(path.parent, resume=True), False)
    assert str(path) in line


def test_config_in_a_checkpoint_is_not_run(path, monkeypatch):
    monkeypatch.setattr(Config, 'pretty_text', '')
    cfg = Config.fromfile(TINY)
    cfg.merge_from_dict(
        dict(work_dir=str(path.parent), log_level='ERROR', launcher='none'))
    runner = build_runner(cfg, 'train')
    runner.optim_wrapper = runner.build_optim_wrapper(runner.optim_wrapper)
    trace = path.parent / 'trace'
    torch.save(
        dict(
            state_dict=runner.model.state_dict(),
            optimizer=runner.optim_wrapper.state_dict(),
            message_hub=runner.message_hub.state_dict(),
            meta=dict(META, iter=4, config=f'open({str(trace)!r}, "w")')),
        path)
    cfg.load_from, cfg.resume = str(path), True
    runner = build_runner(cfg, 'train')
    runner.train()
    assert runner.epoch == 1
    assert not trace.exists()
