"""Necks with a list of position encodings, and the pyramid of a plain ViT."""
from mmpe import environment

environment.require_hosts()

# isort: split
from .simple_feature_pyramid import SimpleFeaturePyramid  # noqa: E402
from .transformer_neck import TransformerNeck  # noqa: E402

__all__ = ['SimpleFeaturePyramid', 'TransformerNeck']
