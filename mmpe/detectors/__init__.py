"""MMDetection's detectors with a list of position encodings."""
from .deformable_detr import DeformableDETR
from .detr import DETR

__all__ = ['DETR', 'DeformableDETR']
