"""Configs of image classifiers, whose bases MMPretrain has.

Without it the part that is ours is built: the backbone.
"""
import copy
import importlib.util
import re
import runpy
from pathlib import Path

from models import build  # noqa: F401  first, for MMCV without its ops

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper

from mmpe.registry import MODELS

ROOT = Path(__file__).parents[1] / 'configs/classification'
CONFIGS = sorted(ROOT.glob('*.py'))
HAS_MMPRETRAIN = importlib.util.find_spec('mmpretrain') is not None
SMALL = dict(
    embed_dims=24, num_layers=12, num_heads=2, feedforward_channels=48)


def own_part(path):
    """What our files say, without what they inherit from MMPretrain."""
    values = {k: v for k, v in runpy.run_path(str(path)).items()
              if not k.startswith('__')}
    base = values.pop('_base_')
    if not base.startswith('mmpretrain::'):
        inherited = own_part(path.with_name(base))
        values = Config._merge_a_into_b(values, inherited)
    return values


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def path(request):
    return request.param


def test_backbone_is_what_the_name_says(path):
    cfg = copy.deepcopy(own_part(path)['model']['backbone'])
    cfg.pop('_delete_', None)
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


@pytest.mark.skipif(
    not HAS_MMPRETRAIN,
    reason='MMPretrain is optional, and needs the torchvision of this torch')
def test_takes_a_training_step(path):
    cfg = Config.fromfile(path)
    from mmengine.registry import DefaultScope
    from mmpretrain.structures import DataSample
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
