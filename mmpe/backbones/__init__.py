"""Backbones with a list of position encodings."""
from mmpe import environment

environment.require_hosts()

# isort: split
from .vision_transformer import VisionTransformer  # noqa: E402

__all__ = ['VisionTransformer']
