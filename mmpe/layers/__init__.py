"""Attention and encoder layers that position encodings can act on."""
from .attention import MultiheadAttention
from .encoder_layer import (DeformableDetrEncoderLayer, DetrEncoderLayer,
                            PositionLayer, PositionStream)

__all__ = [
    'DeformableDetrEncoderLayer', 'DetrEncoderLayer', 'MultiheadAttention',
    'PositionLayer', 'PositionStream'
]
