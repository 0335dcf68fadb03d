"""DETR's decoder layer with position encodings for its keys."""
from typing import Union

from mmdet.models.layers.transformer.detr_layers import \
    DetrTransformerDecoderLayer
from torch import Tensor, nn

from .attention import MultiheadAttention
from .stream import PositionStream


class DetrDecoderLayer(DetrTransformerDecoderLayer):
    """DETR's decoder layer, whose keys may have an embedding for each layer.

    MMDetection's decoder hands ``key_pos`` on to its layers untouched.
    """
    index: int

    @classmethod
    def adopt(cls, layers: nn.ModuleList) -> None:
        """Convert layers in place."""
        for i, layer in enumerate(layers):
            layer.__class__ = cls
            layer.index = i
        MultiheadAttention.adopt(layers)

    def forward(self,
                query: Tensor,
                *args,
                key_pos: Union[Tensor, PositionStream, None] = None,
                **kwargs) -> Tensor:
        """Arguments and result are the base class's, but for ``key_pos``."""
        if not isinstance(key_pos, PositionStream):
            return super().forward(query, *args, key_pos=key_pos, **kwargs)
        # Keys have positions only: nothing changes the tokens.
        key_pos.enter(self.index, None)
        query = super().forward(
            query, *args, key_pos=key_pos.pos(self.index), **kwargs)
        key_pos.leave(self.index, None)
        return query
