"""Configs of image classifiers, whose bases MMPretrain has."""
import importlib.util
import re
import sys
from pathlib import Path

import classifiers  # noqa: F401  first, for MMCV without its ops

import pytest
import torch
from mmengine.config import Config
from mmengine.hub import get_model
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope
from mmpretrain.structures import DataSample

from mmpe.registry import MODELS

ROOT = Path(__file__).parents[1] / 'configs/classification'
CONFIGS = sorted(ROOT.glob('*.py'))
SMALL = dict(
    embed_dims=24, num_layers=12, num_heads=2, feedforward_channels=48)


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def path(request):
    return request.param


def test_backbone_is_what_the_name_says(path):
    cfg = Config.fromfile(path).model.backbone
    size = re.match(r'(deit|cpvt)-(tiny|small|base)', path.stem)[2]
    assert cfg['arch'] == f'deit-{size}'
    types = [item['type'] for item in cfg['positional_encoding']]
    for word, cls in dict(
            cpvt='PEG', lape='LaPE', irpe='ImageRPE', shaw='ShawRPE',
            sine='SinePositionalEncoding').items():
        assert (f'mmpe.{cls}' in types) == (word in path.stem)
    cfg['arch'] = SMALL
    model = MODELS.build(cfg)
    pixels = 384 if '384' in path.stem else 224
    out, = model(torch.randn(2, 3, pixels, pixels))
    if 'distilled' in path.stem:
        assert len(out) == 2
        out = out[0] + out[1]
    assert out.shape == (2, 24)
    out.square().sum().backward()
    orphans = [n for n, p in model.named_parameters()
               if p.requires_grad and p.grad is None]
    assert orphans == []


def test_takes_a_training_step(path):
    cfg = Config.fromfile(path)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        cfg.model.backbone.arch = SMALL
        cfg.model.head.in_channels = SMALL['embed_dims']
        cfg.model.pop('train_cfg', None)
        cfg.model.data_preprocessor = cfg.get('data_preprocessor')
        model = MODELS.build(cfg.model)
        model.init_weights()
        optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
        if 'distilled' in path.stem:  # for evaluation only, says its head
            data = dict(inputs=torch.randn(2, 3, 224, 224))
            assert len(model.eval().test_step(data)) == 2
            return
        samples = [DataSample().set_gt_label(i) for i in range(2)]
        data = dict(inputs=torch.randn(2, 3, 224, 224), data_samples=samples)
        losses = model.train().train_step(data, optim_wrapper)
    assert all(v.isfinite() for v in losses.values())
    groups = {
        p: g for g in optim_wrapper.optimizer.param_groups
        for p in g['params']
    }
    for name, p in model.named_parameters():
        if 'positional_encoding' in name and p.requires_grad:
            assert groups[p]['weight_decay'] == 0


def test_get_model_builds_it_by_name():
    model = get_model('mmpe::classification/cpvt-tiny_4xb256_in1k.py')
    assert type(model).__module__.startswith('mmpretrain.models.classifiers')
    assert type(model.backbone).__module__.startswith('mmpe.backbones')


def test_other_tests_see_no_stand_in():
    if importlib.util.find_spec('torchvision') is None:
        assert not [n for n in sys.modules if n.startswith('torchvision')]
