"""Configs of MMSegmentation's models, on a sample in ADE20K's format."""
from pathlib import Path

from models import build  # noqa: F401  first, for MMCV without its ops

import pytest
import torch
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import DefaultScope

ROOT = Path(__file__).parents[1] / 'configs/segmentation'
CONFIGS = sorted(ROOT.glob('*.py'))


def slim(cfg):
    """The same model, narrow, for images of 96 pixels."""
    model = cfg.model
    model.pretrained = None
    model.data_preprocessor.size = (96, 96)
    model.test_cfg = dict(mode='whole')
    if model.backbone.type == 'mmpe.VisionTransformer':
        model.backbone.drop_path_rate = 0.
        model.backbone.arch = dict(
            embed_dims=24, num_layers=12, num_heads=2,
            feedforward_channels=48)
        replace(model, 384, 24)
    else:
        model.backbone.base_channels = model.backbone.stem_channels = 8
        model.neck[0].in_channels = [32, 64, 128, 256]
    replace(model, 'SyncBN', 'BN')
    return cfg


def replace(cfg, old, new):
    items = cfg.items() if isinstance(cfg, dict) else enumerate(cfg)
    for key, value in items:
        if isinstance(value, (dict, list)):
            replace(value, old, new)
        elif value == old:
            cfg[key] = new


def build_segmentor(cfg):
    from mmseg.registry import MODELS
    from mmseg.utils import register_all_modules
    register_all_modules(init_default_scope=False)
    with DefaultScope.overwrite_default_scope('mmseg'):
        model = MODELS.build(cfg.model)
        model.init_weights()
        return model, build_optim_wrapper(model, cfg.optim_wrapper)


def segmentation_samples(sizes):
    from mmengine.structures import PixelData
    from mmseg.structures import SegDataSample
    out = []
    for size in sizes:
        sample = SegDataSample(gt_sem_seg=PixelData(
            data=torch.randint(0, 19, (1, *size))))
        sample.set_metainfo(dict(img_shape=size, ori_shape=size))
        out.append(sample)
    return out


@pytest.mark.parametrize('path', CONFIGS, ids=lambda p: p.stem)
def test_trains_and_predicts(path):
    cfg = slim(Config.fromfile(path))
    model, optim_wrapper = build_segmentor(cfg)
    assert type(model.data_preprocessor).__module__.startswith('mmpe.')
    sizes = [(96, 96), (64, 80)]
    images = [torch.randint(256, (3, *s), dtype=torch.uint8) for s in sizes]
    log = model.train().train_step(
        dict(inputs=images, data_samples=segmentation_samples(sizes)),
        optim_wrapper)
    assert all(torch.as_tensor(v).isfinite() for v in log.values())
    stepped = optim_wrapper.optimizer.state
    groups = {p: g for g in optim_wrapper.optimizer.param_groups
              for p in g['params']}
    for name, p in model.named_parameters():
        if 'positional_encoding' in name:
            assert stepped.get(p), name
            assert groups[p]['weight_decay'] == 0, name
    results = model.eval().test_step(
        dict(inputs=images[:1], data_samples=segmentation_samples(sizes[:1])))
    assert results[0].pred_sem_seg.data.shape == (1, 96, 96)
