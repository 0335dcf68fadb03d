"""Fixed embeddings of sines and cosines."""
import math
from typing import Optional

import torch
from torch import Tensor

from mmpe.registry import MODELS
from .absolute import AbsoluteEncoding
from .grid import TokenGrid


@MODELS.register_module()
class SinePositionalEncoding(AbsoluteEncoding):
    """Sines and cosines of a cell's coordinates.

    In two dimensions this is DETR's encoding, equal to MMDetection's bit for
    bit: half of the channels encode the row and half the column, both counted
    over the valid cells. In one dimension the tokens are numbered row by row,
    as in Transformers for text, ViT and T2T-ViT: each image's valid rectangle
    by itself, prefix tokens first. Each level is encoded by itself.

    Channel c of a coordinate p with F channels is sin(p / T^(2*floor(c/2)/F))
    for even c, and the cosine of the same angle for odd c.

    Paper: `End-to-End Object Detection with Transformers
    <https://arxiv.org/abs/2005.12872>`_, appendix A.4; one dimension:
    `Attention Is All You Need <https://arxiv.org/abs/1706.03762>`_, sec. 3.5.

    Args:
        num_feats (int, optional): Channels per coordinate. Defaults to half
            the width in two dimensions and the width in one.
        temperature (float): T above. Defaults to 10000.
        normalize (bool): Whether to divide coordinates by their largest valid
            value and multiply by ``scale``; two dimensions only.
            Defaults to False.
        scale (float): Defaults to 2*pi.
        eps (float): Added to the divisor. Defaults to 1e-6.
        offset (float): Added to coordinates when normalising: 0 in DETR, -0.5
            in Deformable DETR. Defaults to 0.
        dims (int): 2 or 1. Defaults to 2.
        order (str): Which half comes first, ``'yx'`` or ``'xy'``.
            Defaults to ``'yx'``.
        start (int): Coordinate of the first cell (in one dimension, of the
            first token). Defaults to 1.

        layers (Sequence[int], optional): See :class:`AbsoluteEncoding`.

    Raises:
        ValueError: If ``num_feats`` doesn't fit the host's width, or an
            argument has a value other than those above.
    """
    name = 'sine'

    def __init__(self,
                 num_feats: Optional[int] = None,
                 temperature: float = 10000,
                 normalize: bool = False,
                 scale: float = 2 * math.pi,
                 eps: float = 1e-6,
                 offset: float = 0.,
                 dims: int = 2,
                 order: str = 'yx',
                 start: int = 1,
                 **host) -> None:
        super().__init__(**host)
        if dims not in (1, 2):
            raise ValueError(f'dims must be 1 or 2, got {dims}')
        if order not in ('yx', 'xy'):
            raise ValueError(f"order must be 'yx' or 'xy', got {order!r}")
        if dims == 1 and normalize:
            raise ValueError('normalize needs dims=2')
        if temperature <= 0:
            raise ValueError(f'temperature must be positive, got {temperature}')
        num_feats = num_feats or self.embed_dims // dims
        if num_feats * dims != self.embed_dims or num_feats % 2:
            raise ValueError(
                f'num_feats={num_feats} with dims={dims} must be even and '
                f'give the width of the host, {self.embed_dims}')
        self.num_feats = num_feats
        self.temperature = temperature
        self.normalize = normalize
        self.scale = scale
        self.eps = eps
        self.offset = offset
        self.dims = dims
        self.order = order
        self.start = start

    def embed(self, grid: TokenGrid) -> Tensor:
        """Embeddings ``(B or 1, N, C)``; zeros for prefix tokens in 2-D."""
        level = self._embed_1d if self.dims == 1 else self._embed_2d
        levels = [
            level(shape, mask, grid)
            for shape, mask in zip(grid.shapes, grid.masks())
        ]
        if grid.num_prefix:
            if self.dims == 1:
                first = torch.arange(grid.num_prefix, device=grid.device)
                prefix = self._waves((first + self.start).float()[None])
            else:
                prefix = levels[0].new_zeros(1, grid.num_prefix,
                                             self.embed_dims)
            levels.insert(0, prefix.expand(len(levels[0]), -1, -1))
        return levels[0] if len(levels) == 1 else torch.cat(levels, dim=1)

    def _embed_1d(self, shape, mask, grid: TokenGrid) -> Tensor:
        h, w = shape
        y = torch.arange(h, device=grid.device)[None, :, None]
        x = torch.arange(w, device=grid.device)[None, None, :]
        if mask is not None:
            w = (~mask[:, 0]).sum(1)[:, None, None]
        number = self.start + grid.num_prefix + y * w + x
        return self._waves(number.flatten(1).float())

    def _embed_2d(self, shape, mask, grid: TokenGrid) -> Tensor:
        h, w = shape
        valid = (
            torch.ones(1, h, w, device=grid.device)
            if mask is None else (~mask).float())
        coords = dict(y=valid.cumsum(1), x=valid.cumsum(2))
        if self.normalize:
            for dim, c in (1, 'y'), (2, 'x'):
                last = coords[c].narrow(dim, -1, 1) + self.eps
                coords[c] = (coords[c] + self.offset) / last * self.scale
        if self.start != 1:  # cells are counted from one
            coords = {c: p + (self.start - 1) for c, p in coords.items()}
        pos = [self._waves(coords[c].flatten(1)) for c in self.order]
        return torch.cat(pos, dim=2)

    def _waves(self, p: Tensor) -> Tensor:
        """``(B, N)`` coordinates to ``(B, N, num_feats)``."""
        channel = torch.arange(
            self.num_feats, dtype=torch.float32, device=p.device)
        angle = p[..., None] / self.temperature**(
            2 * (channel // 2) / self.num_feats)
        return torch.stack((angle[..., 0::2].sin(), angle[..., 1::2].cos()),
                           dim=3).flatten(2)
