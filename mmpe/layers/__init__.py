"""Attention and encoder layers that position encodings can act on."""
from mmpe import environment

environment.require_hosts()

# isort: split
# All hosts come by here: what MMEngine then loads into them, such as by
# init_detector, holds its own classes.
from mmpe.engine import allow_checkpoint_classes  # noqa: E402

allow_checkpoint_classes()

# isort: split
from .attention import MultiheadAttention  # noqa: E402
from .decoder_layer import DetrDecoderLayer  # noqa: E402
from .encoder_layer import (  # noqa: E402
    DeformableDetrEncoderLayer, DetrEncoderLayer, PositionLayer)
from .stream import PositionStream  # noqa: E402
from .vit_layer import ViTLayer  # noqa: E402

__all__ = [
    'DeformableDetrEncoderLayer', 'DetrDecoderLayer', 'DetrEncoderLayer',
    'MultiheadAttention', 'PositionLayer', 'PositionStream', 'ViTLayer'
]
