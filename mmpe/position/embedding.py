"""A learned embedding for each cell."""
import math
from typing import Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmpe.registry import MODELS
from .absolute import AbsoluteEncoding
from .base import Resized
from .grid import TokenGrid
from .relative_bias import check_grid


@MODELS.register_module()
class PositionEmbedding(AbsoluteEncoding):
    """A learned vector for each cell of a grid and each prefix token.

    On another grid the cells' vectors are resized, to each image's valid
    rectangle; on several levels, to each level's. The table is ``(H, W, C)``,
    so that a checkpoint tells its grid.

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
        self.weight = nn.Parameter(torch.empty(*self.grid, self.embed_dims))
        self.prefix = None
        if self.num_prefix:
            self.prefix = nn.Parameter(
                torch.empty(self.num_prefix, self.embed_dims))
        self.fill()

    def fill(self) -> None:
        """Give the tables their first values."""
        for table in self.parameters():
            nn.init.trunc_normal_(table, std=self.std)

    def init_weights(self) -> None:
        self.fill()
        super().init_weights()

    def embed(self, grid: TokenGrid) -> Tensor:
        """Embeddings ``(B or 1, N, C)``; zeros on padding."""
        cells = self.weight.permute(2, 0, 1)[None]  # (1, C, H, W)
        prefix = self.weight.new_empty(0, self.embed_dims)
        if self.prefix is not None:
            prefix = self.prefix
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

    def adapt(self, weights: Dict[str, Tensor], prefix: str) -> List[Resized]:
        """Resize a table of another grid.

        A flat table ``(num_prefix + H * W, C)``, as others have it, doesn't
        tell its grid: it is taken for a square one where it can be, else for
        this one's. Without rows for the prefix tokens these get zeros, which
        is what such a model adds to them.
        """
        name = prefix + 'weight'
        table = weights.get(name)
        if table is None:
            return []
        if table.dim() == 2:
            table = self._unflatten(weights, prefix, table)
        if table.dim() != 3 or table.shape[2] != self.embed_dims:
            raise ValueError(
                f'{name} of the checkpoint has the shape '
                f'{tuple(table.shape)}, the model needs '
                f'{tuple(self.weight.shape)}')
        before = tuple(table.shape[:2])
        if before == self.grid:
            return []
        cells = table.permute(2, 0, 1)[None].float()
        cells = self._resize(cells, self.grid)[0].permute(1, 2, 0)
        weights[name] = cells.to(table.dtype).contiguous()
        return [
            Resized(name, 'grid {}x{}'.format(*before),
                    'grid {}x{}'.format(*self.grid), self.interpolation)
        ]

    def _unflatten(self, weights: Dict[str, Tensor], prefix: str,
                   table: Tensor) -> Tensor:
        rows, first = len(table), self.num_prefix
        if rows < first:
            raise ValueError(f'{prefix}weight of the checkpoint has {rows} '
                             f'rows, the model has {first} prefix tokens')
        if _side(rows) and not _side(rows - first):
            table = torch.cat([table.new_zeros(first, table.shape[1]), table])
        tokens, cells = table.split([first, len(table) - first])
        side, (h, w) = _side(len(cells)), self.grid
        if not side and len(cells) != h * w:
            raise ValueError(
                f'{prefix}weight of the checkpoint has the shape '
                f'{(rows, table.shape[1])}, which with {first} prefix tokens '
                f'is neither a square grid nor one of {h}x{w} cells')
        if first:
            weights[prefix + 'prefix'] = tokens.clone()
        grid = (side, side) if side else (h, w)
        weights[prefix + 'weight'] = cells.unflatten(0, grid).clone()
        return weights[prefix + 'weight']


def _side(cells: int) -> int:
    """Of a square with that many cells, 0 if there is none."""
    side = math.isqrt(max(cells, 0))
    return side if side**2 == cells else 0
