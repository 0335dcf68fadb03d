"""Registries of scope ``mmpe``: a type written ``mmpe.X`` resolves in any config.

They are children of mmengine's root registries, so MMDetection and
MMSegmentation configs find them without ``custom_imports``.
"""
from mmengine.registry import MODELS as MMENGINE_MODELS
from mmengine.registry import Registry

MODELS = Registry(
    'model',
    parent=MMENGINE_MODELS,
    scope='mmpe',
    locations=[
        'mmpe.position', 'mmpe.backbones', 'mmpe.necks', 'mmpe.detectors',
        'mmpe.segmentors'
    ])
