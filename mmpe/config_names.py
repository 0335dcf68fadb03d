"""Config names such as ``mmpe::detr/detr_r50_peg_8xb4-50e_coco.py``.

MMEngine looks them up, for ``_base_``, ``get_config``, ``get_model`` and its
inferencers, in the packages of a dict.
"""
from importlib import metadata

from mmengine.config.utils import MODULE2PACKAGE


def make_known() -> None:
    """Have MMEngine look for configs in mmpe, and in MMSegmentation's fork."""
    # A distribution's name would do for a wheel, but of an editable install
    # MMEngine 0.10.7 takes site-packages for the folder. Where a module is, it
    # asks the import system.
    MODULE2PACKAGE['mmpe'] = 'mmpe.registry'
    # The fork's MMEngine looks for MMSegmentation under the stock package's
    # name, so _base_ = 'mmseg::...' would not find the fork's.
    if _is_installed('onedl-mmsegmentation') and not _is_installed(
            'mmsegmentation'):
        MODULE2PACKAGE['mmseg'] = 'mmseg'


def _is_installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
