"""A learned embedding for each cell."""
import math
from typing import Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmpe.registry import MODELS
from .absolute import AbsoluteEncoding
from .grid import TokenGrid
from .relative_bias import check_grid


@MODELS.register_module()
class PositionEmbedding(AbsoluteEncoding):
    """A learned vector for each cell of a grid and each prefix token.

    On another grid the cells' vectors are resized, to each image's valid
    rectangle; on several levels, to each level's.

    Papers: `ViT <https://arxiv.org/abs/2010.11929>`_, `DeiT
    <https://arxiv.org/abs/2012.12877>`_, sec. 3 for resizing.

    Args:
        grid (tuple[int, int], optional): Height and width in cells. Defaults
            to that of the host, where it has one.
        std (float): Of the first values, a truncated normal distribution.
            Defaults to 0.02.
        interpolation (str): ``'bicubic'``, as DeiT, or ``'bilinear'``.
            Defaults to ``'bicubic'``.
        keep_norm (bool): Whether resized vectors get the norms that the
            table's norms have where they are. DeiT chose the bicubic form
            because it nearly does. Defaults to False.
        layers (Sequence[int], optional): See :class:`AbsoluteEncoding`.

    Raises:
        ValueError: If ``grid`` isn't two positive integers, or
            ``interpolation`` is another.
    """
    name = 'embedding'

    def __init__(self,
                 grid: Optional[Sequence[int]] = None,
                 std: float = 0.02,
                 interpolation: str = 'bicubic',
                 keep_norm: bool = False,
                 layers: Optional[Sequence[int]] = None,
                 **host) -> None:
        super().__init__(layers=layers, **host)
        self.grid = check_grid(grid)
        if interpolation not in ('bicubic', 'bilinear'):
            raise ValueError("interpolation must be 'bicubic' or 'bilinear', "
                             f'got {interpolation!r}')
        self.std = std
        self.interpolation = interpolation
        self.keep_norm = keep_norm
        h, w = self.grid
        self.weight = nn.Parameter(
            torch.empty(self.num_prefix + h * w, self.embed_dims))
        nn.init.trunc_normal_(self.weight, std=std)

    def init_weights(self) -> None:
        nn.init.trunc_normal_(self.weight, std=self.std)
        super().init_weights()

    def embed(self, grid: TokenGrid) -> Tensor:
        """Embeddings ``(B or 1, N, C)``; zeros on padding."""
        prefix, cells = self.weight.split(
            [self.num_prefix, len(self.weight) - self.num_prefix])
        cells = cells.T.unflatten(1, self.grid)[None]  # (1, C, H, W)
        levels = []
        for level, shape in enumerate(grid.shapes):
            sizes = [shape] if grid.sizes is None else grid.sizes[level]
            resized = {
                size: self._on_canvas(cells, size, shape)
                for size in set(sizes)
            }
            levels.append(torch.cat([resized[size] for size in sizes]))
        prefix = prefix.expand(len(levels[0]), -1, -1)
        return TokenGrid.tokens(prefix, levels)

    def _on_canvas(self, cells: Tensor, size: Tuple[int, int],
                   canvas: Tuple[int, int]) -> Tensor:
        if min(size) == 0:
            return cells.new_zeros(1, cells.shape[1], *canvas)
        dy, dx = (c - n for c, n in zip(canvas, size))
        return F.pad(self._resize(cells, size), (0, dx, 0, dy))

    def _resize(self, cells: Tensor, size: Tuple[int, int]) -> Tensor:
        """``(1, C, H, W)`` to ``(1, C, *size)``, in float32."""
        if tuple(cells.shape[2:]) == tuple(size):
            return cells
        with torch.autocast(cells.device.type, enabled=False):
            out = F.interpolate(cells, size, mode=self.interpolation)
            if self.keep_norm:
                norm = F.interpolate(
                    cells.norm(dim=1, keepdim=True), size, mode='bilinear')
                out = F.normalize(out, dim=1) * norm
        return out

    def adapt(self, weights: Dict[str, Tensor], prefix: str) -> List[str]:
        """Resize a square table of another grid."""
        name = prefix + 'weight'
        table = weights.get(name)
        if table is None or table.shape == self.weight.shape:
            return []
        cells = len(table) - self.num_prefix
        side = math.isqrt(max(cells, 0))
        if (table.dim() != 2 or table.shape[1] != self.embed_dims
                or side < 1 or side**2 != cells):
            raise ValueError(
                f'{name} of the checkpoint has the shape '
                f'{tuple(table.shape)}, which is no square grid with '
                f'{self.num_prefix} prefix tokens; the model needs '
                f'{tuple(self.weight.shape)}')
        first, rest = table.split([self.num_prefix, cells])
        rest = rest.T.unflatten(1, (side, side))[None]
        rest = self._resize(rest.float(), self.grid)[0].flatten(1).T
        weights[name] = torch.cat([first, rest.to(first.dtype)])
        return [f'{name}: resized ({self.interpolation}) from the grid '
                f'{side}x{side} to {self.grid[0]}x{self.grid[1]}']
