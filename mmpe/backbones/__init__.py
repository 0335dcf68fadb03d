"""Backbones with a list of position encodings."""
from .vision_transformer import VisionTransformer

__all__ = ['VisionTransformer']
