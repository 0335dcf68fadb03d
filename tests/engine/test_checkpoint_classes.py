"""Checkpoints of mmengine's runner, read by torch's restricted unpickler."""
import pickle
import zipfile

import numpy as np
import pytest
import torch
from mmengine.evaluator import BaseMetric
from mmengine.logging import HistoryBuffer
from mmengine.model import BaseModel
from mmengine.runner import CheckpointLoader, Runner
from torch import nn
from torch.utils.data import Dataset

from mmpe.engine import allow_checkpoint_classes

restricted = pytest.mark.skipif(
    not hasattr(torch.serialization, 'get_unsafe_globals_in_checkpoint'),
    reason='torch before 2.6 has no restriction to satisfy')


class Points(Dataset):
    metainfo = dict(classes=('a', 'b'), palette=[(1, 2, 3), (4, 5, 6)])

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return dict(inputs=torch.full((2, ), float(index)))


class Model(BaseModel):

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))

    def forward(self, inputs, mode):
        out = self.layers(inputs)
        return dict(loss=out.square().mean()) if mode == 'loss' else [out]


class Accuracy(BaseMetric):
    """Reports numpy numbers, as CocoMetric does per class."""
    default_prefix = 'test'

    def process(self, data_batch, data_samples):
        self.results.append(0)

    def compute_metrics(self, results):
        return dict(accuracy=np.float64(0.5), recall=np.float32(0.25))


def make_runner(work_dir, max_epochs=3, **kwargs):
    loader = dict(
        dataset=Points(),
        batch_size=2,
        collate_fn=dict(type='default_collate'),
        sampler=dict(type='DefaultSampler', shuffle=False))
    return Runner(
        model=Model(),
        work_dir=str(work_dir),
        experiment_name=work_dir.name,
        train_dataloader=loader,
        train_cfg=dict(by_epoch=True, max_epochs=max_epochs, val_interval=1),
        val_dataloader=loader,
        val_cfg=dict(),
        val_evaluator=[Accuracy()],
        optim_wrapper=dict(
            optimizer=dict(type='AdamW', lr=0.1),
            clip_grad=dict(max_norm=0.1)),
        param_scheduler=[
            dict(type='LinearLR', start_factor=0.1, by_epoch=False, end=3),
            dict(type='MultiStepLR', milestones=[2]),
            dict(type='CosineAnnealingLR', T_max=3),
        ],
        default_hooks=dict(
            logger=dict(type='LoggerHook', interval=1),
            checkpoint=dict(
                type='CheckpointHook', save_best='test/accuracy',
                rule='greater')),
        custom_hooks=[dict(type='EMAHook')],
        log_level='ERROR',
        **kwargs)


@pytest.fixture(scope='module')
def checkpoint(tmp_path_factory):
    """Of a third epoch, with EMA, three schedulers and a best score."""
    work_dir = tmp_path_factory.mktemp('run')
    make_runner(work_dir).train()
    return work_dir / 'epoch_3.pth'


@pytest.fixture(autouse=True)
def _own_list_of_classes():
    """Each test starts from torch's own list and leaves it as it was."""
    if not hasattr(torch.serialization, 'clear_safe_globals'):
        yield
        return
    before = torch.serialization.get_safe_globals()
    torch.serialization.clear_safe_globals()
    yield
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(before)


@restricted
def test_torch_alone_refuses_it(checkpoint):
    with pytest.raises(pickle.UnpicklingError):
        torch.load(checkpoint)


def test_checkpoint_loads(checkpoint):
    allow_checkpoint_classes()
    allow_checkpoint_classes()
    loaded = torch.load(checkpoint)
    losses = loaded['message_hub']['log_scalars']['train/loss']
    assert len(losses.data[0]) == 6
    assert losses.statistics('min') == losses.data[0].min()
    assert loaded['message_hub']['runtime_info']['best_score'] == 0.5
    assert loaded['ema_state_dict']['steps'] == 6


def test_run_resumes(checkpoint, tmp_path):
    allow_checkpoint_classes()
    make_runner(
        tmp_path, max_epochs=4, load_from=str(checkpoint), resume=True).train()
    assert [path.name for path in tmp_path.glob('epoch_*')] == ['epoch_4.pth']


@restricted
@pytest.mark.parametrize('numpy_module', ['numpy.core', 'numpy._core'])
def test_arrays_pickled_by_either_numpy(checkpoint, numpy_module, tmp_path):
    """The files of the model zoo were written with numpy 1."""
    copy = tmp_path / 'copy.pth'
    with zipfile.ZipFile(checkpoint) as source, \
            zipfile.ZipFile(copy, 'w') as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith('/data.pkl'):
                for found in (b'cnumpy.core.multi', b'cnumpy._core.multi'):
                    content = content.replace(
                        found, f'c{numpy_module}.multi'.encode())
            target.writestr(name, content)
    assert f'{numpy_module}.multiarray._reconstruct' in \
        torch.serialization.get_unsafe_globals_in_checkpoint(copy)
    allow_checkpoint_classes()
    assert torch.load(copy)['meta']['epoch'] == 3


class Forged:
    """Unpickles to whatever ``call`` returns for ``args``."""

    def __init__(self, call, *args):
        self.reduced = call, args

    def __reduce__(self):
        return self.reduced


@restricted
@pytest.mark.parametrize(
    'load', [torch.load, CheckpointLoader.load_checkpoint])
@pytest.mark.parametrize('forged', [
    Forged(getattr, HistoryBuffer, '__init__'),
    Forged(getattr, np.ndarray, 'tofile'),
    Forged(getattr, 'text', 'format'),
    Forged(print, 'unpickled'),
    Forged(np.load, 'somewhere'),
], ids=lambda forged: str(forged.reduced))
def test_nothing_else_gets_in(forged, load, tmp_path):
    allow_checkpoint_classes()
    torch.save(dict(meta=forged), tmp_path / 'forged.pth')
    with pytest.raises(pickle.UnpicklingError):
        load(str(tmp_path / 'forged.pth'))
