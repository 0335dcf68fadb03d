"""Encoder layers with the position encodings between them."""
from typing import Optional, Type

from mmdet.models.layers.transformer.deformable_detr_layers import \
    DeformableDetrTransformerEncoderLayer
from mmdet.models.layers.transformer.detr_layers import \
    DetrTransformerEncoderLayer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .attention import MultiheadAttention
from .deformable_attention import MultiScaleDeformableAttention
from .stream import PositionStream


class PositionLayer:
    """Mixin: an encoder layer of MMDetection between position encodings.

    MMDetection's encoders hand ``query_pos`` on to their layers untouched, so
    the stream travels as ``query_pos`` and their loops stay as they are.
    ``adopt`` turns the layers that MMDetection built into these: parameters,
    state-dict keys and the random state don't change.
    """
    index: int
    with_cp: bool
    attention: Type[nn.Module]
    """What the layers' self-attention becomes."""

    @classmethod
    def adopt(cls, layers: nn.ModuleList, num_cp: int = 0) -> None:
        """Convert layers in place; the first ``num_cp`` are recomputed in the
        backward instead of keeping their activations.

        Raises:
            TypeError: If a layer is of another class than this mixin's.
        """
        for i, layer in enumerate(layers):
            if type(layer) not in cls.__bases__:
                raise TypeError(f'{cls.__name__} can not take over a '
                                f'{type(layer).__name__}')
            layer.__class__ = cls
            layer.index = i
            layer.with_cp = i < num_cp
            cls.attention.adopt(layer)

    def forward(self,
                query: Tensor,
                query_pos: PositionStream,
                key_padding_mask: Optional[Tensor] = None,
                **kwargs) -> Tensor:
        """Arguments and result are the base class's, but for ``query_pos``."""
        stream = query_pos
        query = stream.enter(self.index, query)
        args = query, stream.pos(self.index), key_padding_mask
        terms = stream.terms(self.index)
        if terms:
            kwargs['terms'] = terms
        if self.with_cp and self.training:
            # The encodings stay outside: they are cheap, and their norms must
            # see each batch once.
            query = checkpoint(
                super().forward, *args, use_reentrant=False, **kwargs)
        else:
            query = super().forward(*args, **kwargs)
        return stream.leave(self.index, query)


class DetrEncoderLayer(PositionLayer, DetrTransformerEncoderLayer):
    """DETR's encoder layer."""
    attention = MultiheadAttention


class DeformableDetrEncoderLayer(PositionLayer,
                                 DeformableDetrTransformerEncoderLayer):
    """Deformable DETR's encoder layer."""
    attention = MultiScaleDeformableAttention
