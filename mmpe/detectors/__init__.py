"""MMDetection's detectors with a list of position encodings."""
from mmpe import environment

environment.require_hosts()

# isort: split
from .data_preprocessor import DetDataPreprocessor  # noqa: E402
from .deformable_detr import DeformableDETR  # noqa: E402
from .detr import DETR  # noqa: E402

__all__ = ['DETR', 'DeformableDETR', 'DetDataPreprocessor']
