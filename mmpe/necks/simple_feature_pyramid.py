"""A feature pyramid from a single map."""
from typing import List, Optional, Sequence, Tuple

import torch.nn.functional as F
from mmengine.model import BaseModule, ModuleList, Sequential
from torch import Tensor, nn

from mmpe.layers.channel_norm import ChannelNorm
from mmpe.registry import MODELS


@MODELS.register_module()
class SimpleFeaturePyramid(BaseModule):
    """Maps of several strides, each from the last map of a plain backbone.

    Paper: `Exploring Plain Vision Transformer Backbones for Object Detection
    <https://arxiv.org/abs/2203.16527>`_, sec. 3 and appendix A.2.

    Args:
        in_channels (int): Of the backbone's map.
        out_channels (int): Defaults to 256.
        scales (Sequence[float]): Of the maps that come out, relative to the
            backbone's: 4, 2, 1 or 0.5. Defaults to ``(4, 2, 1, 0.5)``.
        num_outs (int, optional): How many come out; those after ``scales`` are
            the last one's every other cell. Defaults to none after them.

    Raises:
        ValueError: If a scale is another, there are fewer outs than scales or
            ``in_channels`` is no multiple of 4.
    """

    def __init__(self,
                 in_channels: int,
                 out_channels: int = 256,
                 scales: Sequence[float] = (4, 2, 1, 0.5),
                 num_outs: Optional[int] = None,
                 init_cfg: Optional[dict] = None) -> None:
        super().__init__(init_cfg)
        if not isinstance(in_channels, int) or in_channels % 4:
            raise ValueError('in_channels must be a multiple of 4, that of the '
                             f'last map, got {in_channels!r}')
        self.in_channels = in_channels
        wrong = [s for s in scales if s not in (4, 2, 1, 0.5)]
        if wrong or not scales:
            raise ValueError(f'scales must be of 4, 2, 1 and 0.5, got '
                             f'{list(scales)}')
        self.num_outs = len(scales) if num_outs is None else num_outs
        if self.num_outs < len(scales):
            raise ValueError(f'num_outs={num_outs} is less than the '
                             f'{len(scales)} scales')
        self.stages = ModuleList(
            _make_stage(in_channels, out_channels, s) for s in scales)

    def forward(self, inputs: Sequence[Tensor]) -> Tuple[Tensor, ...]:
        """The last of ``inputs``, ``(B, C, h, w)``, to maps of each scale."""
        x = inputs[-1]
        if x.shape[1] != self.in_channels:
            raise ValueError(
                f'SimpleFeaturePyramid: in_channels={self.in_channels}, but '
                f'the last map has {x.shape[1]}')
        outs = [stage(x) for stage in self.stages]
        while len(outs) < self.num_outs:
            outs.append(F.max_pool2d(outs[-1], 1, 2))
        return tuple(outs)


def _make_stage(in_channels: int, out_channels: int,
                scale: float) -> nn.Module:
    layers: List[nn.Module] = []
    channels = in_channels
    if scale == 4:
        layers += [
            nn.ConvTranspose2d(channels, channels // 2, 2, 2),
            ChannelNorm(channels // 2, eps=1e-6),
            nn.GELU()
        ]
        channels //= 2
    if scale in (4, 2):
        layers.append(nn.ConvTranspose2d(channels, channels // 2, 2, 2))
        channels //= 2
    elif scale == 0.5:
        layers.append(nn.MaxPool2d(2, 2))
    return Sequential(
        *layers, nn.Conv2d(channels, out_channels, 1, bias=False),
        ChannelNorm(out_channels, eps=1e-6),
        nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
        ChannelNorm(out_channels, eps=1e-6))
