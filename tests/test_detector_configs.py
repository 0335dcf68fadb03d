"""Configs of detectors with a plain backbone or a transformer neck."""
import copy
import re
from importlib.machinery import PathFinder
from pathlib import Path

from models import samples  # first, for MMCV without its ops

import mmcv
import numpy as np
import pytest
import torch
from mmdet.registry import MODELS
from mmdet.structures.mask import BitmapMasks
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope

HAS_OPS = PathFinder.find_spec('mmcv._ext', mmcv.__path__) is not None
ROOT = Path(__file__).parents[1] / 'configs'
CONFIGS = sorted([*(ROOT / 'vit').glob('*.py'),
                  *(ROOT / 'transformer_neck').glob('*.py')])
TYPES = dict(
    sine='SinePositionalEncoding', peg='PEG', cpvt='PEG', irpe='ImageRPE',
    lape='LaPE')


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def config(request):
    cfg = Config.fromfile(request.param)
    backbone = cfg.model.backbone
    backbone.init_cfg = None
    if backbone.type == 'mmpe.VisionTransformer':
        backbone.arch = dict(
            embed_dims=24, num_layers=12, num_heads=2,
            feedforward_channels=48)
        cfg.model.neck.in_channels = 24
    elif backbone.type == 'ResNet':
        backbone.base_channels = 8
        necks = cfg.model.neck
        first = necks[0] if isinstance(necks, list) else necks
        first.in_channels = [c // 8 for c in first.in_channels]
    return request.param.stem, cfg


def encodings(cfg):
    model = cfg.model
    if model.backbone.type == 'mmpe.VisionTransformer':
        return model.backbone.positional_encoding
    if isinstance(model.neck, list):
        return model.neck[0].positional_encoding
    return []


def test_name_says_what_it_is(config):
    name, cfg = config
    types = [item.type for item in encodings(cfg)]
    words = re.split('[-_]', name)
    for word in {*words} & {*TYPES}:
        assert f'mmpe.{TYPES[word]}' in types
    if 'none' in words:
        assert types == []
    epochs = re.search(r'_(\d+)([ex])_coco', name)
    if epochs:
        assert cfg.train_cfg.max_epochs == int(epochs[1]) * (
            12 if epochs[2] == 'x' else 1)


@pytest.mark.skipif(
    not HAS_OPS, reason="needs MMCV's compiled NMS and RoIAlign")
def test_trains_and_predicts(config):
    _, cfg = config
    init_default_scope('mmdet')
    model = MODELS.build(cfg.model)
    model.init_weights()
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    sizes = [(64, 96), (48, 80)]
    images = [torch.randint(256, (3, *s), dtype=torch.uint8) for s in sizes]
    data_samples = samples(sizes, (64, 96))
    for sample, size in zip(data_samples, sizes):
        sample.gt_instances.masks = BitmapMasks(
            np.ones((2, *size), np.uint8), *size)
    log = model.train().train_step(
        dict(inputs=images, data_samples=copy.deepcopy(data_samples)),
        optim_wrapper)
    assert all(torch.as_tensor(v).isfinite() for v in log.values())
    stepped = optim_wrapper.optimizer.state
    orphans = [n for n, p in model.named_parameters()
               if p.requires_grad and not stepped.get(p)]
    # SGD with momentum and AdamW keep a state for what had a gradient.
    assert orphans == []
    groups = {p: g for g in optim_wrapper.optimizer.param_groups
              for p in g['params']}
    for n, p in model.named_parameters():
        if 'positional_encoding' in n and p.requires_grad:
            assert groups[p]['weight_decay'] == 0, n
    results = model.eval().test_step(
        dict(inputs=images, data_samples=data_samples))
    assert len(results) == 2
    assert results[0].pred_instances.bboxes.shape[1] == 4
