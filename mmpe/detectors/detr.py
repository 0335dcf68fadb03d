"""DETR with a list of position encodings."""
from typing import Dict, Optional, Sequence, Tuple, Union

from mmdet.models.detectors import DETR as _DETR
from mmdet.structures import OptSampleList
from mmengine.logging import print_log
from torch import Tensor

from mmpe.layers import DetrEncoderLayer
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

    def __init__(self,
                 *args,
                 memory_positional_encoding: Union[str, Sequence[dict],
                                                   None] = 'same',
                 **kwargs) -> None:
        self.memory_positional_encoding = memory_positional_encoding
        super().__init__(*args, **kwargs)

    def _init_layers(self) -> None:
        super()._init_layers()
        items = self._memory_items(self.memory_positional_encoding)
        self.memory_positional_encoding = None  # the encoder's embedding
        if items is None:
            return
        self.memory_positional_encoding = PositionEncodingList(
            items,
            embed_dims=self.embed_dims,
            num_heads=self.decoder.layers[0].cross_attn.num_heads,
            num_layers=self.decoder.num_layers)
        for encoding in self.memory_positional_encoding.encodings:
            if not encoding.is_absolute:
                raise ValueError(
                    'memory_positional_encoding is added to keys, but '
                    f'{type(encoding).__name__} embeds nothing')

    def _memory_items(self, cfg) -> Optional[Sequence[dict]]:
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
        stream = encoder_inputs['feat_pos']
        pos = stream.pos(-1)
        if self.memory_positional_encoding is not None:
            pos = self.memory_positional_encoding.embed(stream.grid(-1))
        if pos is not None:  # else MMDetection's zeros stay: for None, MMCV
            # would take the queries' embedding
            decoder_inputs['memory_pos'] = pos.expand_as(
                encoder_inputs['feat'])
        return encoder_inputs, decoder_inputs

    def _levels(self, img_feats: Tuple[Tensor]) -> Sequence[Tensor]:
        return img_feats[-1:]

    def _encoder_pos(self, base: Tensor,
                     pos: Optional[Tensor]) -> Optional[Tensor]:
        return pos
