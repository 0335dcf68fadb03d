"""MMDetection's detectors with a list of position encodings."""
from mmpe import environment

environment.require_hosts()

# isort: split
from .deformable_detr import DeformableDETR  # noqa: E402
from .detr import DETR  # noqa: E402

__all__ = ['DETR', 'DeformableDETR']
