"""A transformer over feature maps, for any detector or segmentor."""
import os
import warnings
from typing import Optional, Sequence, Tuple

import torch
from mmengine.model import BaseModule, ModuleList, Sequential
from torch import Tensor, nn

from mmpe.layers.batch_shapes import padding_mask
from mmpe.layers.channel_norm import ChannelNorm
from mmpe.layers.encoder_stage import DeformableEncoderStage, EncoderStage
from mmpe.position import as_items
from mmpe.registry import MODELS


@MODELS.register_module()
class TransformerNeck(BaseModule):
    """Encoder layers of DETR or Deformable DETR over the maps of a backbone or
    a feature pyramid; as many maps of the same sizes come out.

    With ``'dense'`` attention each of ``levels`` attends to itself, by layers
    and encodings of its own, as in the encoder of `RT-DETR
    <https://arxiv.org/abs/2304.08069>`_, sec. 4.2; the other levels don't.
    With ``'deformable'`` all levels attend to all.

    Note:
        Which cells are padding is known where the model's data preprocessor is
        ``mmpe.DetDataPreprocessor`` or ``mmpe.SegDataPreProcessor``, which
        take the arguments of MMDetection's and MMSegmentation's. With another
        all count as valid.

    Args:
        in_channels (Sequence[int]): Of each map. One with another width than
            ``embed_dims`` is projected and normalised.
        embed_dims (int): Of each map that comes out. Defaults to 256.
        num_layers (int): Encoder layers. Defaults to 1.
        positional_encoding (list[dict]): The encodings.
        attention (str): ``'dense'`` or ``'deformable'``.
            Defaults to ``'dense'``.
        levels (Sequence[int]): Which maps attend if dense, from the end if
            negative. Defaults to ``(-1, )``, the coarsest.
        num_heads (int): Defaults to 8.
        feedforward_channels (int): Defaults to 1024.
        num_points (int): Sampling points of each head and level if deformable.
            Defaults to 4.
        dropout (float): Defaults to 0.
        with_cp (bool): Whether layers are recomputed in the backward instead
            of keeping their activations. Defaults to False.

    Raises:
        ValueError: If an argument has a value other than those above, or an
            encoding isn't for this attention.
    """

    reads_batch_shapes = True
    """Whether it asks a data preprocessor of mmpe what is padding."""

    def __init__(self,
                 in_channels: Sequence[int],
                 embed_dims: int = 256,
                 num_layers: int = 1,
                 positional_encoding: Sequence[dict] = (dict(
                     type='mmpe.SinePositionalEncoding', normalize=True), ),
                 attention: str = 'dense',
                 levels: Sequence[int] = (-1, ),
                 num_heads: int = 8,
                 feedforward_channels: int = 1024,
                 num_points: int = 4,
                 dropout: float = 0.,
                 with_cp: bool = False,
                 init_cfg: Optional[dict] = None) -> None:
        super().__init__(init_cfg)
        for name, value in dict(
                in_channels=in_channels, levels=levels).items():
            if not isinstance(value, (list, tuple)):
                raise ValueError(f'{name} must be a list, got {value!r}')
        if num_layers < 1 or embed_dims % num_heads:
            raise ValueError(
                'num_layers must be positive and embed_dims a multiple of '
                f'num_heads, got {num_layers}, {embed_dims} and {num_heads}')
        self.in_channels = list(in_channels)
        count = len(in_channels)
        if attention not in ('dense', 'deformable'):
            raise ValueError("attention must be 'dense' or 'deformable', got "
                             f'{attention!r}')
        if not levels or any(not -count <= i < count for i in levels):
            raise ValueError(f'levels must be of {-count} to {count - 1}, got '
                             f'{list(levels)}')
        self.projections = ModuleList(
            nn.Identity() if c == embed_dims else Sequential(
                nn.Conv2d(c, embed_dims, 1, bias=False),
                ChannelNorm(embed_dims)) for c in in_channels)
        arguments = dict(
            items=as_items(positional_encoding),
            embed_dims=embed_dims,
            num_layers=num_layers,
            num_heads=num_heads,
            feedforward_channels=feedforward_channels,
            dropout=dropout,
            with_cp=with_cp)
        if attention == 'dense':
            self.groups = [(i, ) for i in sorted({i % count for i in levels})]
            stages = [EncoderStage(**arguments) for _ in self.groups]
        else:
            self.groups = [tuple(range(count))]
            stages = [
                DeformableEncoderStage(
                    **arguments, num_levels=count, num_points=num_points)
            ]
        self.stages = ModuleList(stages)
        self.floats_per_token = num_layers * (
            14 * embed_dims + 2 * feedforward_channels)
        self.has_warned = False

    def forward(self, inputs: Sequence[Tensor]) -> Tuple[Tensor, ...]:
        """Maps ``(B, C_i, h_i, w_i)`` to ``(B, embed_dims, h_i, w_i)``.

        Raises:
            ValueError: If the maps aren't of ``in_channels``.
        """
        widths = [x.shape[1] for x in inputs]
        if widths != self.in_channels:
            raise ValueError(f'TransformerNeck: in_channels='
                             f'{self.in_channels}, but the maps have {widths}')
        maps = [p(x) for p, x in zip(self.projections, inputs)]
        if self.training:
            self._warn_of_memory(maps)
        for group, stage in zip(self.groups, self.stages):
            masks = [padding_mask(maps[i]) for i in group]
            if any(m is not None for m in masks):
                masks = [
                    torch.zeros_like(maps[i][:, 0], dtype=torch.bool)
                    if m is None else m for i, m in zip(group, masks)
                ]
            own = stage([maps[i] for i in group], masks)
            for i, m in zip(group, own):
                maps[i] = m
        return tuple(maps)

    def _warn_of_memory(self, maps: Sequence[Tensor]) -> None:
        """Once, if what the layers keep for the backward seems too much."""
        tokens = max(
            sum(maps[i][0, 0].numel() for i in group) for group in self.groups)
        # Attention keeps nothing of all pairs, so it grows with the tokens.
        needed = 4 * self.floats_per_token * tokens * len(maps[0])
        if self.has_warned or needed < free_bytes(maps[0].device):
            return
        self.has_warned = True
        warnings.warn(
            f'{tokens} tokens an image, a batch of {len(maps[0])}: the neck '
            f'will keep about {needed // 2**20} MiB, more than is free. Fewer '
            'or coarser levels, with_cp=True or a smaller batch take less')


def free_bytes(device: torch.device) -> float:
    """Memory that is left on a device; infinite where it can't be asked."""
    if device.type == 'cuda':
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf('SC_AVPHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    except (AttributeError, ValueError):
        return float('inf')
