"""DETR with a list of position encodings."""
from typing import Dict, Optional, Sequence, Tuple, Union

from mmdet.models.detectors import DETR as _DETR
from mmdet.structures import OptSampleList
from mmengine.logging import print_log
from torch import Tensor

from mmpe.layers import DetrDecoderLayer, DetrEncoderLayer, PositionStream
from mmpe.position import PositionEncodingList
from mmpe.registry import MODELS
from .mixin import PositionEncodingMixin


@MODELS.register_module()
class DETR(PositionEncodingMixin, _DETR):
    """MMDetection's DETR with a list of position encodings in its encoder.

    Args:
        positional_encoding (list[dict] | dict): See
            :class:`PositionEncodingMixin`.
        memory_positional_encoding (str | list[dict], optional): What the
            decoder's cross-attention adds to its keys. ``'same'`` is the
            list's absolute embedding or, if it has none, MMDetection's sine:
            CPVT changed the encoding "of the encoder part", and DETR without
            the decoder's loses far more (DETR's table 3). None is nothing; a
            list is an embedding of its own. Defaults to ``'same'``.

    Raises:
        TypeError: If ``memory_positional_encoding`` is something else.
        ValueError: If its list has an encoding that embeds nothing.
    """
    encoder_layer = DetrEncoderLayer
    decoder_has_keys = True

    def __init__(self,
                 *args,
                 memory_positional_encoding: Union[str, Sequence[dict],
                                                   None] = 'same',
                 **kwargs) -> None:
        self.memory_positional_encoding = memory_positional_encoding
        super().__init__(*args, **kwargs)

    def _init_layers(self) -> None:
        super()._init_layers()
        DetrDecoderLayer.adopt(self.decoder.layers)
        own = self._own_items(self.memory_positional_encoding)
        self.keeps_embedding = own is None  # the encoder's, for the keys
        with_decoder = [
            e for e in self.positional_encoding.encodings if e.decoder
        ]
        if with_decoder and not self.keeps_embedding:
            raise ValueError(
                f'{type(with_decoder[0]).__name__}: decoder=True is for the '
                "encoder's embedding on the decoder's keys, but "
                'memory_positional_encoding gives them another')
        if self.keeps_embedding:
            own = [
                item for item, encoding in zip(
                    self.encoding_items, self.positional_encoding.encodings)
                if encoding.decoder
            ]
        self.memory_positional_encoding = PositionEncodingList(
            own,
            embed_dims=self.embed_dims,
            num_heads=self.decoder.layers[0].cross_attn.num_heads,
            num_layers=self.decoder.num_layers)
        for encoding in self.memory_positional_encoding.encodings:
            if not (encoding.is_absolute or encoding.needs_embedding):
                raise ValueError(
                    'memory_positional_encoding is added to keys, but '
                    f'{type(encoding).__name__} embeds nothing')
        self.memory_positional_encoding.check_embedding(self.keeps_embedding)

    def _own_items(self, cfg) -> Optional[Sequence[dict]]:
        if cfg is None:
            return []
        if isinstance(cfg, (list, tuple)):
            return cfg
        if cfg != 'same':
            raise TypeError("memory_positional_encoding must be 'same', None "
                            f'or a list of dicts, got {cfg!r}')
        if self.positional_encoding.is_absolute:
            return None
        print_log(
            "The encoder's position encodings embed nothing, so the decoder's "
            'keys get the sine encoding; memory_positional_encoding=None '
            'leaves them without one.',
            logger='current')
        return [dict(type='mmpe.SinePositionalEncoding', normalize=True)]

    def pre_transformer(
            self,
            img_feats: Tuple[Tensor],
            batch_data_samples: OptSampleList = None) -> Tuple[Dict, Dict]:
        """MMDetection's, with the position encodings' embeddings."""
        encoder_inputs, decoder_inputs = super().pre_transformer(
            img_feats, batch_data_samples)
        grid = encoder_inputs['feat_pos'].grid(-1)
        keys = self.memory_positional_encoding
        pos = (
            encoder_inputs['feat_pos'].pos(-1)
            if self.keeps_embedding else keys.embed(grid))
        if pos is not None:  # else MMDetection's zeros stay: for None, MMCV
            # would take the queries' embedding
            pos = pos.expand_as(encoder_inputs['feat'])
            decoder_inputs['memory_pos'] = PositionStream(keys, grid, pos)
        return encoder_inputs, decoder_inputs

    def _levels(self, img_feats: Tuple[Tensor]) -> Sequence[Tensor]:
        return img_feats[-1:]

    def _encoder_pos(self, base: Tensor,
                     pos: Optional[Tensor]) -> Optional[Tensor]:
        return pos
