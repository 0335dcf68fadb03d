"""Parameters, FLOPs and speed."""
import pytest
import torch
from mmengine.config import Config
from mmengine.hub import get_config
from torch import nn
from work_dirs import config

from mmpe.evaluation.model_facts import (image_size, images_per_second,
                                         model_facts)
from mmpe.layers import term_attention
from mmpe.registry import MODELS

QUICKSTART = 'quickstart/deformable-detr_r18_{}_coco16'


def test_detr_is_counted_at_its_test_scale():
    facts = model_facts(get_config('mmdet::detr/detr_r50_8xb2-150e_coco.py'))
    assert facts.size == (800, 1333) and facts.why is None
    assert facts.parameters == 41_575_061 and facts.encoding_parameters == 0
    ours = model_facts(config('detr/detr_r50_sine_8xb4-50e_coco'))
    assert ours == facts
    # 86 at the mean size of val2017's images, says Deformable DETR's table.
    assert 86 < facts.gflops < 105


def test_irpe_adds_its_tables_and_their_products():
    sine = model_facts(config('detr/detr_r50_sine_8xb4-50e_coco'))
    irpe = model_facts(config('detr/detr_r50_irpe_8xb2-150e_coco'))
    # Six layers; 9x9 vectors, for 25x42 queries of 8 heads of 32.
    assert irpe.encoding_parameters == 6 * 81 * 32
    assert irpe.parameters - sine.parameters == 6 * 81 * 32
    assert irpe.gflops - sine.gflops == pytest.approx(
        6 * 81 * 25 * 42 * 256 / 1e9, rel=1e-6)


def test_deformable_detr_with_a_peg():
    none = model_facts(config(QUICKSTART.format('none')))
    peg = model_facts(config(QUICKSTART.format('peg')))
    assert none.size == peg.size == (168, 224)
    # A 3x3 kernel and a bias for each of 256 channels; the cells of levels
    # at strides 16, 32 and 64.
    assert peg.encoding_parameters == 256 * 10
    cells = 11 * 14 + 6 * 7 + 3 * 4
    assert peg.gflops - none.gflops == pytest.approx(
        cells * 256 * 9 / 1e9, rel=1e-6)


@MODELS.register_module()
class Patches(nn.Module):
    """A model of one layer."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 16, 16)

    def forward(self, inputs, data_samples, mode):
        return self.conv(inputs)


def test_a_convolution_counts_as_papers_have_it():
    """A multiplication with its addition is one."""
    facts = model_facts(Config(dict(model=dict(type='mmpe.Patches'))))
    weights = 3 * 16 * 16 * 8
    assert facts.parameters == weights + 8
    assert facts.gflops == pytest.approx(50 * 83 * weights / 1e9, rel=1e-6)


def test_counting_leaves_nothing_behind():
    before = (torch._shape_as_tensor, term_attention.DENSE_TOKENS,
              torch.backends.mha.get_fastpath_enabled())
    cfg = config(QUICKSTART.format('irpe'))
    text = str(cfg.to_dict())
    assert model_facts(cfg) == model_facts(cfg)
    assert str(cfg.to_dict()) == text
    assert before == (torch._shape_as_tensor, term_attention.DENSE_TOKENS,
                      torch.backends.mha.get_fastpath_enabled())


def test_two_stages_have_parameters_only():
    facts = model_facts(
        config('transformer_neck/faster-rcnn_r50_neck-peg_fpn_109e_coco'))
    assert facts.parameters == 42_743_776
    assert facts.encoding_parameters == 2816
    assert facts.gflops is None and 'finds in an image' in facts.why


@pytest.mark.parametrize('model, why', [
    (dict(type='Gone'), 'Gone'),
    (dict(type='mmpe.DETR'), 'backbone'),
])
def test_a_model_that_cannot_be_built(model, why):
    facts = model_facts(Config(dict(model=model)))
    assert facts.parameters is facts.gflops is None
    assert why in facts.why and '\n' not in facts.why


def test_a_module_of_the_user_that_is_gone():
    cfg = config(QUICKSTART.format('none'),
                 custom_imports=dict(imports=['gone_module']))
    assert 'gone_module' in model_facts(cfg).why


@pytest.mark.parametrize('resize, divisor, size', [
    (dict(type='Resize', scale=(1333, 800), keep_ratio=True), 1, (800, 1333)),
    (dict(type='Resize', scale=(800, 1333)), 32, (800, 1344)),
    (dict(type='mmdet.Resize', scale=(448, 336)), None, (336, 448)),
    (dict(type='FixScaleResize', scale='nonsense'), 1, (800, 1333)),
    (dict(type='Flip'), 1, (800, 1333)),
])
def test_the_size_of_an_image(resize, divisor, size):
    cfg = Config(dict(
        model=dict(data_preprocessor=dict(pad_size_divisor=divisor)),
        test_dataloader=dict(dataset=dict(pipeline=[resize]))))
    assert image_size(cfg) == size


def test_speed_says_what_was_measured():
    cfg = config(QUICKSTART.format('lape'))
    size = (168, 224)
    speed = images_per_second(cfg, 'cpu', size, 2, repeats=2, warm_up=1)
    assert speed.images_per_second > 0 and speed.why is None
    assert (speed.device, speed.size, speed.batch) == ('cpu', size, 2)


def test_speed_on_a_device_that_is_not_there():
    speed = images_per_second(
        config(QUICKSTART.format('none')), 'cuda:99', (64, 64), 1)
    assert speed.images_per_second is None and speed.why
