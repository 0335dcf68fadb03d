"""Imports MMPretrain's models, in an environment without torchvision too.

No torchvision is published for every torch, and one for another breaks
MMEngine. Of MMPretrain's models one takes functions on boxes from it, when it
is called; here an empty module stands in while they are imported, and only
then, so that no other test sees it.
"""
import importlib.util
import sys
from types import ModuleType

from models import build  # noqa: F401  first, for MMCV without its ops

NAMES = ('torchvision', 'torchvision.ops', 'torchvision.ops.boxes')


def _import_models() -> None:
    import mmpretrain.models  # noqa: F401


if importlib.util.find_spec('torchvision'):
    _import_models()
else:
    sys.modules.update((name, ModuleType(name)) for name in NAMES)
    try:
        _import_models()
    finally:
        for name in NAMES:
            del sys.modules[name]
