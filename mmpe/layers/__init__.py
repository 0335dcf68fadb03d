"""Attention and encoder layers that position encodings can act on."""
from mmpe import environment

environment.require_hosts()

# isort: split
from .attention import MultiheadAttention  # noqa: E402
from .encoder_layer import (  # noqa: E402
    DeformableDetrEncoderLayer, DetrEncoderLayer, PositionLayer,
    PositionStream)

__all__ = [
    'DeformableDetrEncoderLayer', 'DetrEncoderLayer', 'MultiheadAttention',
    'PositionLayer', 'PositionStream'
]
