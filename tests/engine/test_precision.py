"""--amp with and without a GPU."""
import pytest
import torch
from mmengine.config import Config
from mmengine.optim import AmpOptimWrapper
from mmengine.registry import OPTIM_WRAPPERS
from torch import nn

from mmpe.engine import precision
from mmpe.engine.command_line import UsageError
from mmpe.engine.precision import BFloat16OptimWrapper, enable_amp


def make_cfg(**kwargs):
    return Config(
        dict(
            optim_wrapper=dict(
                optimizer=dict(type='SGD', lr=0.1), **kwargs)))


@pytest.fixture
def on(monkeypatch):
    return lambda device: monkeypatch.setattr(precision, 'get_device', lambda:
                                              device)


@pytest.mark.parametrize('kwargs', [
    dict(),
    dict(type='OptimWrapper'),
    dict(type='AmpOptimWrapper', loss_scale=512., dtype='float16'),
])
def test_cpu_trains_in_bfloat16(on, kwargs):
    on('cpu')
    cfg = make_cfg(**kwargs, clip_grad=dict(max_norm=1.0))
    enable_amp(cfg)
    model = nn.Linear(2, 2)
    cfg.optim_wrapper.optimizer = torch.optim.SGD(model.parameters(), 0.1)
    wrapper = OPTIM_WRAPPERS.build(cfg.optim_wrapper)
    assert type(wrapper) is BFloat16OptimWrapper
    before = model.weight.detach().clone()
    with wrapper.optim_context(model):
        out = model(torch.ones(1, 2))
    assert out.dtype == torch.bfloat16
    wrapper.update_params(out.float().sum())
    assert model.weight.dtype == torch.float32
    assert not torch.equal(model.weight, before)


def test_gpu_trains_as_mmdetection_does(on):
    on('cuda')
    cfg = make_cfg(type='OptimWrapper')
    enable_amp(cfg)
    assert cfg.optim_wrapper.type == AmpOptimWrapper.__name__
    assert cfg.optim_wrapper.loss_scale == 'dynamic'


def test_settings_of_the_user_stay_on_a_gpu(on):
    on('cuda')
    cfg = make_cfg(type='AmpOptimWrapper', loss_scale=512., dtype='bfloat16')
    enable_amp(cfg)
    assert cfg.optim_wrapper.loss_scale == 512.
    assert cfg.optim_wrapper.dtype == 'bfloat16'


def test_config_of_a_run_on_a_cpu_trains_on_a_gpu(on):
    on('cpu')
    cfg = make_cfg()
    enable_amp(cfg)
    on('cuda')
    enable_amp(cfg)
    assert cfg.optim_wrapper.type == 'AmpOptimWrapper'


def test_another_wrapper_is_not_thrown_away(on):
    on('cpu')
    with pytest.raises(UsageError, match='MyOptimWrapper'):
        enable_amp(make_cfg(type='MyOptimWrapper'))
