"""Tokens of a grid to windows and back."""
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from mmpe.position import TokenGrid


class Windows:
    """Square windows over a grid of one level without prefix tokens, from its
    top-left cell on; those at its end are padded.

    Args:
        grid (TokenGrid): The grid.
        size (int): Height and width of a window, in cells.
    """

    def __init__(self, grid: TokenGrid, size: int) -> None:
        self.shape, = grid.shapes
        self.size = size
        self.numbers = tuple(-(-n // size) for n in self.shape)
        self.grid = TokenGrid(((size, size), ), device=grid.device)

    @property
    def is_padded(self) -> bool:
        return any(n % self.size for n in self.shape)

    def split(self, x: Tensor) -> Tensor:
        """``(B, N, C)`` to ``(B * windows, size**2, C)``."""
        h, w = self.shape
        rows, cols = (n * self.size for n in self.numbers)
        x = x.unflatten(1, self.shape)
        x = F.pad(x, (0, 0, 0, cols - w, 0, rows - h))
        x = x.unflatten(2, (-1, self.size)).unflatten(1, (-1, self.size))
        return x.transpose(2, 3).flatten(0, 2).flatten(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        """Inverse of :meth:`split`."""
        h, w = self.shape
        x = x.unflatten(1, (self.size, self.size))
        x = x.unflatten(0, (-1, *self.numbers)).transpose(2, 3)
        x = x.flatten(3, 4).flatten(1, 2)[:, :h, :w]
        return x.flatten(1, 2)

    def padding(self, mask: Optional[Tensor],
                batch: int) -> Optional[Tensor]:
        """Which cells of the windows are padding, ``(B * windows, size**2)``,
        from the grid's mask ``(B, N)``; None if none is."""
        if mask is None and not self.is_padded:
            return None
        if mask is None:
            mask = torch.zeros(
                batch, self.shape[0] * self.shape[1], dtype=torch.bool,
                device=self.grid.device)
        valid = self.split((~mask)[..., None].float())
        return valid[..., 0] == 0


def check_window(size: Optional[int], num_prefix: int) -> None:
    """Raise a ValueError for windows that can't be."""
    if size is None:
        return
    if not isinstance(size, int) or size < 1:
        raise ValueError('window_size must be a positive number of cells, '
                         f'got {size!r}')
    if num_prefix:
        raise ValueError('window_size needs with_cls_token=False: a prefix '
                         'token is in no window')
