"""Every config that ships can be trained, and is what its name says."""
import copy
import functools
import re
from pathlib import Path

from models import samples  # first, for MMCV without its ops

import pytest
import torch
from mmdet.registry import MODELS
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from mmengine.registry import init_default_scope

ROOT = Path(__file__).parents[1] / 'configs'
CONFIGS = sorted(
    path for folder in ('detr', 'deformable_detr', 'quickstart')
    for path in (ROOT / folder).glob('*.py'))
DETR = ROOT / 'detr'
DEFORMABLE = ROOT / 'deformable_detr'
TABLE = [path for path in CONFIGS if path.parent in (DETR, DEFORMABLE)]
PEG_PARAMETERS = 9 * 256 + 2 * 256  # the convolution and the affine norm



def configs(paths):
    return pytest.mark.parametrize('path', paths, ids=lambda p: p.stem)


read = functools.lru_cache(maxsize=None)(Config.fromfile)


def load(path: Path) -> Config:
    cfg = copy.deepcopy(read(path))
    cfg.model.backbone.init_cfg = None  # no download
    return cfg


def slim(cfg: Config) -> Config:
    """The same model with a narrow backbone and two layers a coder."""
    model = cfg.model
    base = model.backbone.get('base_channels', 64)
    model.backbone.base_channels = base // 4
    model.neck.in_channels = [c // 4 for c in model.neck.in_channels]
    model.encoder.num_layers = model.decoder.num_layers = 2
    return cfg


def build(cfg: Config):
    """Build as the runner does, but for initialisation, which takes long."""
    init_default_scope(cfg.default_scope)
    model = MODELS.build(cfg.model)
    if hasattr(model, 'level_embed'):  # MMDetection leaves it uninitialised
        torch.nn.init.normal_(model.level_embed)
    return model


def count(model) -> int:
    return sum(p.numel() for p in model.parameters())


@configs(CONFIGS)
def test_takes_a_training_step(path):
    cfg = slim(load(path))
    if cfg.model.get('as_two_stage'):
        cfg.model.num_queries = 20  # no more than the small images have tokens
    model = build(cfg).train()
    optim_wrapper = build_optim_wrapper(model, cfg.optim_wrapper)
    sizes = [(64, 96), (48, 96)]
    data = dict(
        inputs=[torch.randint(256, (3, *s), dtype=torch.uint8) for s in sizes],
        data_samples=samples(sizes, canvas=sizes[0]))
    log = model.train_step(data, optim_wrapper)
    assert all(torch.as_tensor(v).isfinite() for v in log.values())
    # AdamW keeps a state for what had a gradient.
    stepped = optim_wrapper.optimizer.state
    orphans = [n for n, p in model.named_parameters()
               if p.requires_grad and not stepped.get(p)]
    assert orphans == []


@configs(TABLE)
def test_name_says_what_it_is(path):
    cfg = load(path)
    gpus, batch, epochs = map(
        int, re.search(r'_(\d+)xb(\d+)-(\d+)e_coco', path.stem).groups())
    assert cfg.train_dataloader.batch_size == batch
    assert cfg.auto_scale_lr.base_batch_size == gpus * batch
    assert cfg.train_cfg.max_epochs == epochs
    assert all(s.end <= epochs and max(s.milestones) < epochs
               for s in cfg.param_scheduler if s.type == 'MultiStepLR')


@configs(TABLE)
def test_name_says_which_model(path):
    model = load(path).model
    encoding = re.search(r'_(sine|none|learned-lape|learned|lape|peg|'
                         r'irpe-only|irpe|shaw|huang|sasa|axial-deeplab|'
                         r'transformer-xl|relative-bias)[_-]', path.stem).group(1)
    types = dict(
        sine=['mmpe.SinePositionalEncoding'],
        none=[],
        learned=['mmpe.LearnedPositionalEncoding'],
        peg=['mmpe.PEG'],
        lape=['mmpe.SinePositionalEncoding', 'mmpe.LaPE'],
        irpe=['mmpe.SinePositionalEncoding', 'mmpe.ImageRPE'],
        shaw=['mmpe.SinePositionalEncoding', 'mmpe.ShawRPE'],
        huang=['mmpe.SinePositionalEncoding', 'mmpe.HuangRPE'],
        sasa=['mmpe.SinePositionalEncoding', 'mmpe.SASARPE'],
        **{
            'learned-lape': ['mmpe.LearnedPositionalEncoding', 'mmpe.LaPE'],
            'irpe-only': ['mmpe.ImageRPE'],
            'axial-deeplab':
            ['mmpe.SinePositionalEncoding', 'mmpe.AxialDeepLabRPE'],
            'transformer-xl':
            ['mmpe.SinePositionalEncoding', 'mmpe.TransformerXLRPE'],
            'relative-bias':
            ['mmpe.SinePositionalEncoding', 'mmpe.RelativePositionBias']
        })
    assert [e.type for e in model.positional_encoding] == types[encoding]
    assert ('everywhere' in path.stem) == (
        model.get('memory_positional_encoding', 'same') is None)
    assert ('dc5' in path.stem) == (
        model.backbone.get('dilations', (1, 1, 1, 1))[-1] == 2)
    assert ('1scale' in path.stem) == (model.get('num_feature_levels') == 1)


@configs([path for path in TABLE if '8xb4-50e' in path.stem])
def test_a_swap_is_one_edit(path):
    sine = re.sub('_(none-everywhere|none|learned-lape|learned|lape|peg)_',
                  '_sine_', path.name)
    configs = [load(path), load(path.with_name(sine))]
    for cfg in configs:
        cfg.model.pop('positional_encoding')
        cfg.model.pop('memory_positional_encoding', None)
    assert configs[0].to_dict() == configs[1].to_dict()


@pytest.mark.parametrize('path, parameters', [
    (DETR / 'detr_r50_sine_8xb4-50e_coco.py', 41_575_061),
    (DETR / 'detr_r50_peg_8xb4-50e_coco.py', 41_575_061 + PEG_PARAMETERS),
    (DEFORMABLE / 'deformable-detr_r50_peg_16xb2-50e_coco.py',
     40_118_934 + PEG_PARAMETERS),
])
def test_parameters(path, parameters):
    assert count(build(load(path))) == parameters


@pytest.mark.parametrize('backbone', ['r50', 'r50-dc5'])
def test_one_scale_has_the_published_size(backbone):
    name = f'deformable-detr-1scale_{backbone}_none_8xb4-50e_coco.py'
    assert round(count(build(load(DEFORMABLE / name))) / 1e6) == 34


@pytest.mark.parametrize('path, backbone_lr', [
    (DETR / 'detr_r50_peg_8xb4-50e_coco.py', 2e-5),
    (DETR / 'detr_r50-dc5_learned_8xb4-50e_coco.py', 2e-5),
    (DETR / 'detr_r50_sine_16xb4-500e_coco.py', 1e-5),
    (DEFORMABLE / 'deformable-detr-1scale_r50_peg_8xb4-50e_coco.py', 2e-5),
])
def test_learning_rates_and_weight_decay(path, backbone_lr):
    cfg = slim(load(path))
    model = build(cfg)
    optimizer = build_optim_wrapper(model, cfg.optim_wrapper).optimizer
    groups = {p: g for g in optimizer.param_groups for p in g['params']}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            continue
        slow = 'sampling_offsets' in name or 'reference_points' in name
        lr = (backbone_lr if name.startswith('backbone.') else
              1e-5 if slow else 1e-4)
        decay = 0 if name.startswith('positional_encoding.') else 1e-4
        assert groups[p]['lr'] == pytest.approx(lr), name
        assert groups[p]['weight_decay'] == pytest.approx(decay), name
