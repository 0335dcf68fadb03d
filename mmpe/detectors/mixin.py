"""What all detectors with a list of position encodings share."""
from typing import Dict, Optional, Sequence, Tuple, Type

import torch
from mmdet.structures import OptSampleList
from torch import Tensor

from mmpe.layers import MultiheadAttention, PositionLayer, PositionStream
from mmpe.position import PositionEncodingList, TokenGrid, as_items


class PositionEncodingMixin:
    """Gives a DETR-like detector of MMDetection a list of position encodings.

    The detector's own methods run as they are: they see an encoding whose
    embedding is zero and an encoder that takes a :class:`PositionStream` for
    its ``query_pos``.

    Args:
        positional_encoding (list[dict] | dict): The encodings. A dict without
            ``type``, as in MMDetection's configs, is the sine encoding.

    Raises:
        TypeError: If ``memory_positional_encoding`` is given to a detector
            whose decoder has no keys.
        ValueError: If an encoding changes the number of tokens, or is relative
            in a way that the encoder's attention doesn't know.
    """

    encoder_layer: Type[PositionLayer]
    """What the encoder's layers become."""
    decoder_has_keys = False
    """Whether the decoder's attention adds positions to keys."""
    embeds_more = False
    """Whether the encoder adds more than the list's embedding."""

    def __init__(self, *args, **kwargs) -> None:
        if 'memory_positional_encoding' in kwargs:
            raise TypeError(
                f'{type(self).__name__} takes no memory_positional_encoding: '
                "its decoder's cross-attention has no keys to add it to")
        super().__init__(*args, **kwargs)

    def _init_layers(self) -> None:
        self.encoding_items = items = as_items(self.positional_encoding)
        self.encoder = dict(self.encoder)
        num_cp = self.encoder.pop('num_cp', 0)  # MMDetection's needs fairscale
        if num_cp > self.encoder['num_layers']:
            raise ValueError(f"encoder.num_cp={num_cp} is more than its "
                             f"{self.encoder['num_layers']} layers")
        attention = self.encoder['layer_cfg'].get('self_attn_cfg', {})
        self.positional_encoding = dict(
            num_feats=attention.get('embed_dims', 256) // 2)
        super()._init_layers()

        self.encoder_layer.adopt(self.encoder.layers, num_cp)
        MultiheadAttention.adopt(self.decoder)
        self.positional_encoding = ZeroEmbeddingList(
            items,
            embed_dims=self.embed_dims,
            num_heads=self.encoder.layers[0].self_attn.num_heads,
            num_layers=self.encoder.num_layers)
        self.encoder_layer.check(self.positional_encoding, self.embeds_more,
                                 self.decoder_has_keys)

    def pre_transformer(
            self,
            img_feats: Tuple[Tensor],
            batch_data_samples: OptSampleList = None) -> Tuple[Dict, Dict]:
        """MMDetection's, with a stream for the encoder's ``feat_pos``."""
        encoder_inputs, decoder_inputs = super().pre_transformer(
            img_feats, batch_data_samples)
        feat = encoder_inputs['feat']
        grid = TokenGrid(
            shapes=tuple(tuple(f.shape[-2:]) for f in self._levels(img_feats)),
            mask=encoder_inputs['feat_mask'],
            device=feat.device)
        pos = self.positional_encoding.embed(grid)
        if pos is not None:
            pos = pos.expand(len(feat), -1, -1)
        encoder_inputs['feat_pos'] = PositionStream(
            self.positional_encoding, grid,
            self._encoder_pos(encoder_inputs['feat_pos'], pos))
        return encoder_inputs, decoder_inputs

    def _levels(self, img_feats: Tuple[Tensor]) -> Sequence[Tensor]:
        """The maps that the encoder sees."""
        return img_feats

    def _encoder_pos(self, base: Tensor,
                     pos: Optional[Tensor]) -> Optional[Tensor]:
        """What MMDetection adds besides a position, and the position."""
        return base if pos is None else base + pos


class ZeroEmbeddingList(PositionEncodingList):
    """Answers the call that MMDetection's detectors make for each level with
    zeros; the mixin adds the embedding of all levels at once."""

    def forward(self, mask: Optional[Tensor],
                input: Optional[Tensor] = None) -> Tensor:
        """Zeros ``(B, C, h, w)`` for a mask or a map of that size."""
        b, h, w = mask.shape if mask is not None else input[:, 0].shape
        like = mask if mask is not None else input
        zero = torch.zeros((), device=like.device)
        return zero.expand(b, self.embed_dims, h, w)
