"""Position encodings for detection and segmentation transformers."""

__version__ = "0.1.0"
