"""Small detectors for tests, made from MMDetection's own configs."""
import copy
from typing import Optional, Sequence, Tuple

import torch
from mmdet.registry import MODELS
from mmdet.structures import DetDataSample
from mmdet.utils import register_all_modules
from mmengine.config import Config
from mmengine.hub import get_config
from mmengine.structures import InstanceData

register_all_modules()

BASES = dict(
    detr='detr/detr_r50_8xb2-150e_coco.py',
    deformable='deformable_detr/deformable-detr_r50_16xb2-50e_coco.py',
    refine='deformable_detr/deformable-detr-refine_r50_16xb2-50e_coco.py',
    twostage='deformable_detr/'
    'deformable-detr-refine-twostage_r50_16xb2-50e_coco.py')


def zoo_model(kind: str) -> Config:
    """The model of MMDetection's config, without downloads."""
    model = get_config(f'mmdet::{BASES[kind]}').model
    model.backbone.init_cfg = None
    return model


def small_cfg(kind: str,
              dims: int = 16,
              heads: int = 2,
              layers: int = 2,
              num_queries: int = 5,
              num_levels: int = 2,
              **overrides) -> Config:
    """A zoo model at reduced size, dropout 0.

    Args:
        kind (str): A key of ``BASES``, or ``'single'`` for Deformable DETR
            with one level.
    """
    if kind == 'single':
        kind, num_levels = 'deformable', 1
    cfg = zoo_model(kind)
    cfg.backbone.update(depth=18, base_channels=4, norm_eval=False)
    cfg.backbone.norm_cfg.requires_grad = True
    cfg.num_queries = num_queries
    cfg.bbox_head.embed_dims = dims
    cfg.positional_encoding.num_feats = dims // 2
    for coder in cfg.encoder, cfg.decoder:
        coder.num_layers = layers
        for part in coder.layer_cfg.values():
            part.embed_dims = dims
            if 'feedforward_channels' in part:
                part.update(feedforward_channels=2 * dims, ffn_drop=0.)
            else:
                part.update(num_heads=heads, dropout=0.)
    channels = [4 * 2**i for i in range(4)]
    if kind == 'detr':
        cfg.neck.update(in_channels=channels[-1:], out_channels=dims)
    else:
        levels = 4 - num_levels
        cfg.backbone.out_indices = tuple(range(levels, 4))
        cfg.num_feature_levels = num_levels
        cfg.neck.update(
            in_channels=channels[levels:],
            out_channels=dims,
            num_outs=num_levels,
            norm_cfg=dict(type='GN', num_groups=2))
        cfg.encoder.layer_cfg.self_attn_cfg.update(
            num_levels=num_levels, num_points=2)
        cfg.decoder.layer_cfg.cross_attn_cfg.update(
            num_levels=num_levels, num_points=2)
    for key, value in overrides.items():
        cfg[key] = value
    return cfg


def build(cfg, scope: str = 'mmpe', seed: int = 0):
    """Build a detector of ``scope`` and initialise it as the runner does."""
    cfg = copy.deepcopy(cfg)
    if scope == 'mmpe':
        cfg.type = f'mmpe.{cfg.type}'
    torch.manual_seed(seed)
    model = MODELS.build(cfg)
    model.init_weights()
    return model


def small(kind: str, items: Optional[Sequence[dict]] = None, **overrides):
    """A small detector of mmpe with the encodings of ``items``."""
    if items is not None:
        overrides['positional_encoding'] = items
    return build(small_cfg(kind, **overrides))


def samples(sizes: Sequence[Tuple[int, int]],
            canvas: Tuple[int, int],
            num_boxes: int = 2) -> list:
    """Data samples of images with these sizes on one canvas."""
    out = []
    for h, w in sizes:
        boxes = torch.tensor([[0.1, 0.2, 0.5, 0.6], [0.3, 0.1, 0.9, 0.7]])
        boxes = boxes[:num_boxes] * torch.tensor([w, h, w, h])
        sample = DetDataSample(
            gt_instances=InstanceData(
                bboxes=boxes, labels=torch.tensor([1, 3])[:num_boxes]))
        sample.set_metainfo(
            dict(
                img_shape=(h, w),
                ori_shape=(h, w),
                batch_input_shape=canvas,
                pad_shape=canvas,
                scale_factor=(1., 1.)))
        out.append(sample)
    return out


def move_parameters(module: torch.nn.Module, seed: int = 1) -> None:
    """Move parameters off values such as zero, which hide what they do."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            fan_in = p[0].numel() if p.dim() > 1 else 1
            noise = torch.randn(p.shape, generator=generator)
            p.add_(noise * min(0.3, fan_in**-0.5))
