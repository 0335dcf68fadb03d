"""What a type without a prefix means in scope ``mmpe``."""
from models import build  # noqa: F401  first, for MMCV without its ops

import mmdet.datasets.transforms
import mmdet.models
import pytest
import torch
from mmengine.registry import (MODELS, OPTIMIZERS, TRANSFORMS, DefaultScope,
                               Registry, root)

import mmpe.position
from mmpe.registry import MODELS as MMPE_MODELS


def in_scope(scope, registry, kind):
    """What ``kind`` is in scope ``mmpe`` within another."""
    with DefaultScope.overwrite_default_scope(scope):
        with registry.switch_scope_and_registry('mmpe') as found:
            return found.get(kind)


@pytest.mark.parametrize('scope', ['mmdet', 'mmseg', None])
def test_own_types_come_first(scope):
    assert in_scope(scope, MODELS, 'PEG') is mmpe.position.PEG
    assert in_scope(scope, MODELS, 'DETR') is mmpe.detectors.DETR
    assert in_scope(scope, MODELS, 'mmdet.DETR') is mmdet.models.DETR


@pytest.mark.parametrize('scope', ['mmdet', 'mmpe'])
def test_other_types_are_of_mmdetection(scope):
    assert in_scope(scope, MODELS, 'ResNet') is mmdet.models.ResNet
    assert in_scope(scope, TRANSFORMS, 'PackDetInputs') is (
        mmdet.datasets.transforms.PackDetInputs)
    assert in_scope(scope, TRANSFORMS, 'Resize') is (
        mmdet.datasets.transforms.Resize)


def test_other_types_are_of_the_scope_around():
    from mmseg.datasets.transforms import LoadAnnotations, PackSegInputs
    from mmseg.models import ResNet
    assert in_scope('mmseg', MODELS, 'ResNet') is ResNet
    assert in_scope('mmseg', TRANSFORMS, 'LoadAnnotations') is LoadAnnotations
    assert in_scope('mmseg', TRANSFORMS, 'PackSegInputs') is PackSegInputs


def test_types_of_pytorch_are_found():
    assert in_scope('mmdet', OPTIMIZERS, 'AdamW') is torch.optim.AdamW


def test_unknown_types_are_named():
    with pytest.raises(KeyError, match='Nonsuch is not in the mmpe::model'):
        MMPE_MODELS.build(dict(type='Nonsuch', _scope_='mmpe'))


def test_every_kind_of_registry_has_the_scope():
    """One without it would look among MMEngine's own types only."""
    roots = [r for r in vars(root).values() if isinstance(r, Registry)]
    assert len(roots) > 20
    assert [r.name for r in roots if 'mmpe' not in r.children] == []
