"""A bias for each offset of a grid."""
from typing import Dict, List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmpe.registry import MODELS
from .base import PositionEncoding, Resized
from .buckets import OffsetBuckets
from .grid import TokenGrid
from .terms import BucketTerm, PairBias, Term


@MODELS.register_module()
class RelativePositionBias(PositionEncoding):
    """A number for each head and each offset between two cells, added to the
    logit.

    Papers: `Swin Transformer <https://arxiv.org/abs/2103.14030>`_, eq. 4, and
    `BEiT <https://arxiv.org/abs/2106.08254>`_.

    On another grid than ``grid`` the table is resized (bicubic), to each
    image's valid rectangle.

    Note:
        Pairs with a prefix token share one number for each head, where BEiT
        has three.

        ``layer_norm`` is how LaPE's official code treats such a bias. It needs
        as many keys as it was made for.

    Args:
        grid (tuple[int, int], optional): Height and width, in cells, whose
            offsets the table has. Defaults to that of the host, where it has
            one.
        layer_norm (bool): Whether each query's biases are normalised over its
            keys, with a scale and shift for each key. On the grid ``grid``
            without padding only. Defaults to False.

    Raises:
        ValueError: If ``grid`` isn't two positive integers.
    """
    name = 'bias'

    def __init__(self,
                 grid: Optional[Sequence[int]] = None,
                 layer_norm: bool = False,
                 **host) -> None:
        super().__init__(**host)
        self.grid = check_grid(grid)
        shape = (self.num_heads, *(2 * n - 1 for n in self.grid))
        self.tables = self._make(*shape)
        if self.num_prefix:
            self.prefix = self._make(self.num_heads, 1)
        self.norms = nn.ModuleList(
            nn.LayerNorm(self.grid[0] * self.grid[1])
            for _ in range(self.num_layers if layer_norm else 0))

    def _make(self, *shape: int) -> nn.ParameterList:
        return nn.ParameterList(
            nn.Parameter(torch.zeros(shape)) for _ in range(self.num_layers))

    def init_weights(self) -> None:
        for norm in self.norms:
            norm.reset_parameters()
        for name, table in self.named_parameters():
            if not name.startswith('norms'):
                nn.init.zeros_(table)
        super().init_weights()

    def terms(self, i: int, grid: TokenGrid) -> List[Term]:
        if len(grid.shapes) != 1:
            raise ValueError('a bias of pairs needs the tokens of one level, '
                             f'got the grids {grid.shapes}')
        shape, = grid.shapes
        if grid.sizes is None:
            table = resize_offsets(self.tables[i], shape)
        else:
            sizes = grid.sizes[0]
            resized = {
                size: self._on_canvas(self.tables[i], size, shape)
                for size in set(sizes)
            }
            table = torch.stack([resized[size] for size in sizes])
        table = table.flatten(-2)
        if self.num_prefix:
            prefix = self.prefix[i].expand(*table.shape[:-1], 1)
            table = torch.cat([table, prefix], -1)
        buckets = OffsetBuckets('exact', 'clip', shape, whole_cells=True)
        term = BucketTerm('bias', table, buckets, grid)
        return [self._normalized(i, term)] if len(self.norms) else [term]

    def _normalized(self, i: int, term: BucketTerm) -> PairBias:
        grid, p = term.grid, self.num_prefix
        if grid.shapes[0] != self.grid or grid.sizes is not None and set(
                grid.sizes[0]) != {self.grid}:
            raise ValueError(
                f'layer_norm=True takes grids of {self.grid} cells without '
                f'padding, got {grid.sizes or grid.shapes}')
        table = term.table if term.table.dim() == 2 else term.table[0]
        bias = table[:, term.map.all_ids]
        cells = self.norms[i](bias[:, p:, p:])
        rows = torch.cat([bias[:, p:, :p], cells], 2)
        return PairBias(torch.cat([bias[:, :p], rows], 1))

    @staticmethod
    def _on_canvas(table: Tensor, size: Tuple[int, int],
                   canvas: Tuple[int, int]) -> Tensor:
        """Resized to an image's offsets, in the middle of all offsets."""
        if min(size) == 0:
            return table.new_zeros(
                len(table), *(2 * n - 1 for n in canvas))
        dy, dx = (c - n for c, n in zip(canvas, size))
        return F.pad(resize_offsets(table, size), (dx, dx, dy, dy))

    @property
    def changes_nothing(self) -> bool:
        return not any(p.any() for p in self.parameters())

    def adapt(self, weights: Dict[str, Tensor], prefix: str) -> List[Resized]:
        """Resize tables of another grid."""
        changes = []
        for i, own in enumerate(self.tables):
            name = f'{prefix}tables.{i}'
            table = weights.get(name)
            if table is None or table.shape == own.shape:
                continue
            if table.dim() != 3 or len(table) != self.num_heads or not (
                    table.shape[1] % 2 and table.shape[2] % 2):
                raise ValueError(
                    f'{name} of the checkpoint has the shape '
                    f'{tuple(table.shape)}, the model needs '
                    f'{tuple(own.shape)}')
            weights[name] = resize_offsets(table, self.grid)
            changes.append(
                Resized(name, 'offsets {}x{}'.format(*table.shape[1:]),
                        'offsets {}x{}'.format(*own.shape[1:]), 'bicubic'))
        return changes


def resize_offsets(table: Tensor, grid: Tuple[int, int]) -> Tensor:
    """``(H, 2h - 1, 2w - 1)`` to the offsets of another grid, bicubic."""
    size = tuple(2 * n - 1 for n in grid)
    if tuple(table.shape[1:]) == size:
        return table
    # The official code of Swin Transformer resizes in this way, too.
    return F.interpolate(table[None], size=size, mode='bicubic')[0]


def check_grid(grid: Optional[Sequence[int]]) -> Tuple[int, int]:
    """Height and width as a tuple.

    Raises:
        ValueError: If it isn't two positive integers.
    """
    if (not isinstance(grid, (list, tuple)) or len(grid) != 2 or not all(
            isinstance(n, int) and n > 0 for n in grid)):
        raise ValueError('grid must be (height, width) in cells, got '
                         f'{grid!r}')
    return tuple(grid)
