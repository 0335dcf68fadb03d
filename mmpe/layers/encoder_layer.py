"""Encoder layers with the position encodings between them."""
from typing import Optional, Type

import torch
from mmdet.models.layers.transformer.deformable_detr_layers import \
    DeformableDetrTransformerEncoderLayer
from mmdet.models.layers.transformer.detr_layers import \
    DetrTransformerEncoderLayer
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmpe.position import PositionEncodingList, TokenGrid
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

    @classmethod
    def check(cls,
              encoding: PositionEncodingList,
              embeds_more: bool = False,
              decoder_has_keys: bool = False) -> None:
        """Whether a host of these layers can do what a list asks for.

        Args:
            encoding (PositionEncodingList): The list.
            embeds_more (bool): Whether the host adds more than the list's
                embedding. Defaults to False.
            decoder_has_keys (bool): Whether there is a decoder whose attention
                adds positions to keys. Defaults to False.

        Raises:
            ValueError: If not.
        """
        if not encoding.keeps_grid:
            raise ValueError(
                'these layers need as many tokens after an encoding as before '
                'it: PEG with zero_padding=False is for backbones')
        for e in encoding.encodings:
            if e.decoder and not decoder_has_keys:
                raise ValueError(
                    f'{type(e).__name__}: decoder=True is for DETR, whose '
                    "decoder's keys have positions")
        encoding.check_embedding(embeds_more)
        some_grid = TokenGrid(((1, 1), ), device=torch.device('cpu'))
        for i in range(encoding.num_layers):
            cls.attention.check(encoding.terms(i, some_grid))

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
