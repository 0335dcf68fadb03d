"""Every name and shape of official checkpoints, against full-size configs."""
import re
from pathlib import Path

import classifiers  # noqa: F401  first, for MMPretrain
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope
from official import IRPE, DETR, KEYS, weights

from mmpe.checkpoint.families import recognise
from mmpe.checkpoint.fit import fit
from mmpe.checkpoint.rules import rename
from mmpe.engine.usage_error import UsageError
from mmpe.position import ImageRPE
from mmpe.registry import MODELS

CONFIGS = Path(__file__).parents[2] / 'configs'
DETR_SINE = 'detr/detr_r50_sine_16xb4-500e_coco.py'
DEFORMABLE = 'deformable_detr/deformable-detr'
TWO_STAGE = f'{DEFORMABLE}-refine-twostage_r50_sine_16xb2-50e_coco.py'
MODELS_OF = {
    'detr/detr_r50': DETR_SINE,
    'deformable_detr/r50_single_scale':
    f'{DEFORMABLE}-1scale_r50_sine_8xb4-50e_coco.py',
    'deformable_detr/r50_multi_scale':
    f'{DEFORMABLE}_r50_sine_16xb2-50e_coco.py',
    'deformable_detr/r50_multi_scale_refine':
    f'{DEFORMABLE}-refine_r50_sine_16xb2-50e_coco.py',
    'deformable_detr/r50_two_stage': TWO_STAGE,
    **{
        key.split(' ')[0]: DETR_SINE
        for key in IRPE[DETR] if key.startswith('rpe-')
    },
}
# Of models that mmpe doesn't have.
OTHERS = ('compact-transformers/', 't2t/', 'ceit/')
CLASSIFIERS = {
    'deit/deit_tiny_patch16_224': 'deit-tiny_4xb256_in1k',
    'deit/deit_tiny_distilled_patch16_224': 'deit-tiny-distilled_4xb256_in1k',
    'lape/deit_tiny_patch16_224': 'deit-tiny-lape_4xb256_in1k',
    'lape/deit_tiny_patch16_224_2D_RPE_LN':
    'deit-tiny-relative-bias-layer-norm_4xb256_in1k',
    'twins/pcpvt_small_v0': 'mmpretrain::twins/twins-pcpvt-small_8xb128_in1k',
    'deit_tiny_patch16_224_ctx_product_50_shared_k':
    'deit-tiny-irpe_4xb256_in1k',
    'deit_small_patch16_224_ctx_product_50_shared_qkv':
    'deit-small-irpe-on-qkv_4xb256_in1k',
    'deit_small_patch16_224_ctx_euc_20_shared_k':
    'deit-small-irpe-euclidean_4xb256_in1k',
    'deit_small_patch16_224_ctx_quant_51_shared_k':
    'deit-small-irpe-quant_4xb256_in1k',
    'deit_small_patch16_224_ctx_cross_56_shared_k':
    'deit-small-irpe-cross_4xb256_in1k',
    'deit_base_patch16_224_ctx_product_50_shared_qkv':
    'deit-base-irpe-on-qkv_16xb64_in1k',
}
MODELS_OF.update({
    name: config if '::' in config else f'classification/{config}.py'
    for name, config in CLASSIFIERS.items()
})


def test_every_list_has_a_config():
    names = set(KEYS) | set(IRPE['deit']) | {
        key.split(' ')[0] for key in IRPE[DETR] if key.startswith('rpe-')}
    rest = names - set(MODELS_OF)
    assert all(name.startswith(OTHERS) for name in rest), rest


def full_size(name):
    """A model of full size, a detector without numbers."""
    path = MODELS_OF[name]
    if path.startswith('mmpretrain::'):
        from mmengine.hub import get_config
        cfg = get_config(f'{path}.py')
    else:
        cfg = Config.fromfile(CONFIGS / path)
    if name.startswith('rpe-'):
        cfg.model.positional_encoding.append(ImageRPE.from_flag(name))
    init_default_scope(cfg.default_scope)
    device = 'meta' if cfg.default_scope == 'mmdet' else 'cpu'
    with torch.device(device):
        return MODELS.build(cfg.model)


@pytest.fixture(scope='module', params=MODELS_OF)
def official(request):
    """An official checkpoint and the model that it is for."""
    return weights(request.param), full_size(request.param)


def missed(found, model):
    """What ``--strict`` refuses, as text; None if nothing."""
    known = set(model.state_dict())
    try:
        family, own = recognise('file', found, known)
        _, entries = fit('file', model, *rename(own, family.rules, known))
    except (UsageError, ValueError) as error:
        return str(error)
    text = [f'{e.name} {e.note}' for e in entries if e.is_missed]
    return '\n'.join(text) or None


def kinds(names):
    """One name of those that differ in their numbers only."""
    return {re.sub(r'\d+', 'N', name): name for name in names}.values()


def test_all_is_loaded(official):
    found, model = official
    assert missed(found, model) is None
    known = set(model.state_dict())
    family, own = recognise('file', found, known)
    _, entries = fit('file', model, *rename(own, family.rules, known))
    loaded = {e.name for e in entries if e.status == 'loaded'}
    parameters = {name for name, _ in model.named_parameters()}
    # LaPE's bias is for pairs of patches; ours has one number for the rest.
    own_ones = {n for n in parameters if '.bias.prefix.' in n}
    assert parameters - own_ones <= loaded


def test_another_name_is_named(official):
    found, model = official
    for name in kinds(found):
        changed = dict(found)
        changed[f'{name}x'] = changed.pop(name)
        text = missed(changed, model)
        assert text and name in text, name


def test_another_shape_is_named(official):
    found, model = official
    for name in kinds(found):
        shape = list(found[name].shape) or [0]
        shape[0] += 1
        text = missed({**found, name: torch.zeros(shape)}, model)
        assert text and name in text, name
