"""The buckets of all pairs of a grid."""
from functools import cached_property
from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot


class BucketMap:
    """The bucket of each pair of tokens of a grid, from their offset.

    Never holds a number per pair: a bucket depends on the offset alone.

    Args:
        table (Tensor): int64, ``(2h-1, 2w-1)``; the bucket of query minus key
            (dy, dx) is at ``[dy+h-1, dx+w-1]``.
        num_buckets (int): Buckets, without that of the prefix.
        num_prefix (int): Tokens in front of the grid. Pairs with one of them
            are in a bucket of their own, number ``num_buckets``.
        axes (tuple[Tensor, Tensor, int], optional): Where the bucket is
            ``rows[dy+h-1] * columns + cols[dx+w-1]``: rows, cols and the
            number of columns.
    """

    def __init__(self,
                 table: Tensor,
                 num_buckets: int,
                 num_prefix: int = 0,
                 axes: Optional[Tuple[Tensor, Tensor, int]] = None) -> None:
        self.table = table
        self.num_buckets = num_buckets + (num_prefix > 0)
        self.num_prefix = num_prefix
        self.axes = axes
        self.shape = tuple((n + 1) // 2 for n in table.shape)
        self.num_tokens = num_prefix + self.shape[0] * self.shape[1]

    def ids(self, start: int = 0, stop: Optional[int] = None) -> Tensor:
        """Buckets of queries ``start`` to ``stop`` and all keys, ``(n, N)``.
        """
        h, w = self.shape
        p, device = self.num_prefix, self.table.device
        queries = torch.arange(self.num_tokens, device=device)[start:stop] - p
        cells = torch.arange(h * w, device=device)
        dy = queries[:, None].clamp(min=0) // w - cells // w
        dx = queries[:, None].clamp(min=0) % w - cells % w
        ids = self.table[dy + h - 1, dx + w - 1]
        if p:
            ids[queries < 0] = self.num_buckets - 1
            ids = torch.cat(
                [ids.new_full((len(ids), p), self.num_buckets - 1), ids], 1)
        return ids

    def flipped_ids(self, start: int, stop: int) -> Tensor:
        """``(n, N)`` again, but of (key, query)."""
        return self._flipped.ids(start, stop)

    @cached_property
    def _flipped(self) -> 'BucketMap':
        with torch.inference_mode(False):
            return self.flipped()

    @cached_property
    def all_ids(self) -> Tensor:
        """``(N, N)``, for small grids."""
        with torch.inference_mode(False):
            return self.ids()

    @cached_property
    def row_ids(self) -> Tensor:
        """``(h, h)``: for the rows of query and key, where ``axes``."""
        return self._pairs(self.axes[0], self.shape[0])

    @cached_property
    def rows_one_hot(self) -> Tensor:
        """``(h, rows, h)``: 1 where query and key row have that bucket."""
        count = (self.num_buckets - (self.num_prefix > 0)) // self.axes[2]
        with torch.inference_mode(False):
            return one_hot(self.row_ids, count).transpose(1, 2).float()

    @cached_property
    def cols_one_hot(self) -> Tensor:
        """``(w, columns, w)``, like ``rows_one_hot``."""
        with torch.inference_mode(False):
            hot = one_hot(self.col_ids, self.axes[2])
            return hot.transpose(1, 2).float().contiguous()

    @cached_property
    def col_ids(self) -> Tensor:
        """``(w, w)``, like ``row_ids``."""
        return self._pairs(self.axes[1], self.shape[1])

    @staticmethod
    def _pairs(ids: Tensor, size: int) -> Tensor:
        with torch.inference_mode(False):
            at = torch.arange(size, device=ids.device)
            return ids[at[:, None] - at + size - 1]

    def flipped(self) -> 'BucketMap':
        """The map of (key, query): offsets have the other sign."""
        axes = self.axes
        if axes is not None:
            axes = axes[0].flip(0), axes[1].flip(0), axes[2]
        flipped = BucketMap(
            self.table.flip(0, 1), self.num_buckets - (self.num_prefix > 0),
            self.num_prefix, axes)
        return flipped
