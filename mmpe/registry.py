"""Registries of scope ``mmpe``: a type written ``mmpe.X`` resolves in any config.

They are children of mmengine's root registries, so MMDetection and
MMSegmentation configs find them without ``custom_imports``.
"""
from importlib import metadata

from mmengine.config.utils import MODULE2PACKAGE
from mmengine.registry import MODELS as MMENGINE_MODELS
from mmengine.registry import Registry


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


# The fork's MMEngine looks for MMSegmentation under the stock package's name,
# so _base_ = 'mmseg::...' would not find the fork's.
if _is_installed('onedl-mmsegmentation') and not _is_installed(
        'mmsegmentation'):
    MODULE2PACKAGE['mmseg'] = 'mmseg'

MODELS = Registry(
    'model',
    parent=MMENGINE_MODELS,
    scope='mmpe',
    locations=[
        'mmpe.position', 'mmpe.backbones', 'mmpe.necks', 'mmpe.detectors',
        'mmpe.segmentors'
    ])
