"""The steps that ``tools/benchmark.py`` times."""
import mmpe  # noqa: F401, isort: skip; first, for mmcv without ops
from argparse import Namespace
from typing import Callable

import torch
from mmdet.registry import MODELS
from mmdet.structures import DetDataSample
from mmengine.config import Config
from mmengine.hub import get_config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope
from mmengine.structures import InstanceData
from torch import nn

from benchmark_timing import Step

from mmpe.engine.command_line import UsageError

NUM_BOXES = 7  # as an image of COCO has on average


def read_config(path: str) -> Config:
    """Read a file, or MMDetection's config as ``mmdet::detr/...``."""
    try:
        cfg = get_config(path) if '::' in path else Config.fromfile(path)
    except (OSError, AssertionError, ValueError) as error:
        raise UsageError(f'cannot read config {path}: {error}') from error
    if 'model' not in cfg:
        raise UsageError(f'{path} has no model')
    _forget_pretrained(cfg.model)
    return cfg


def _forget_pretrained(cfg) -> None:
    """Speed doesn't depend on the weights, so there is nothing to download."""
    if isinstance(cfg, dict):
        if (cfg.get('init_cfg') or {}).get('type') == 'Pretrained':
            cfg['init_cfg'] = None
        for value in cfg.values():
            _forget_pretrained(value)


def build_model(cfg: Config, args: Namespace) -> nn.Module:
    init_default_scope(cfg.get('default_scope') or 'mmdet')
    torch.manual_seed(0)
    model = MODELS.build(cfg.model)
    model.init_weights()
    if args.dropout is not None:
        _set_dropout(model, args.dropout)
    return model.to(args.device)


def _set_dropout(model: nn.Module, p: float) -> None:
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.p:
            module.p = p
        elif isinstance(module, nn.MultiheadAttention) and module.dropout:
            module.dropout = p


def random_batch(args: Namespace) -> dict:
    """What a data loader would give."""
    generator = torch.Generator().manual_seed(0)
    images, samples = [], []
    for i in range(args.batch):
        h, w = args.size
        if args.padded and i % 2:
            h = round(0.85 * h)
        elif args.padded:
            w = round(0.85 * w)
        images.append(
            torch.randint(
                256, (3, h, w), dtype=torch.uint8, generator=generator))
        corners = torch.rand(NUM_BOXES, 2, 2, generator=generator)
        boxes = corners.sort(1).values * torch.tensor([w, h])
        labels = torch.randint(80, (NUM_BOXES, ), generator=generator)
        sample = DetDataSample(
            gt_instances=InstanceData(bboxes=boxes.flatten(1), labels=labels))
        sample.set_metainfo(
            dict(img_shape=(h, w), ori_shape=(h, w), scale_factor=(1., 1.)))
        samples.append(sample)
    return dict(inputs=images, data_samples=samples)


def make_step(cfg: Config, model: nn.Module, batch: dict,
              args: Namespace) -> Step:
    """The step of ``args.part`` in ``args.mode``."""
    train = args.mode == 'train'
    model.train(train)
    if args.part == 'encoder':
        return _encoder_step(model, batch, train)
    if train:
        optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
        return lambda: lambda: model.train_step(batch, optim_wrapper)
    data = model.data_preprocessor(batch, False)
    return lambda: torch.no_grad()(lambda: model(**data, mode='tensor'))


def _encoder_step(model: nn.Module, batch: dict, train: bool) -> Step:
    if not hasattr(model, 'pre_transformer'):
        raise UsageError(f'a {type(model).__name__} has no encoder to time')
    data = model.data_preprocessor(batch, True)
    with torch.no_grad():
        feats = model.extract_feat(data['inputs'])
    torch.manual_seed(0)
    feats = tuple(torch.randn_like(f).requires_grad_(train) for f in feats)

    def prepare() -> Callable[[], None]:
        model.zero_grad()
        with torch.set_grad_enabled(train):
            inputs, _ = model.pre_transformer(feats, data['data_samples'])
        gradient = torch.ones_like(inputs['feat'])

        @torch.set_grad_enabled(train)
        def work() -> None:
            memory = model.forward_encoder(**inputs)['memory']
            if train:
                memory.backward(gradient)

        return work

    return prepare
