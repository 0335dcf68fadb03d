"""Which bucket the offset between two cells falls into (iRPE, sec. 3.2)."""
import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Optional, Tuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

INDICES = ('piecewise', 'clip')


def piecewise_index(x: Tensor, alpha: float, beta: float,
                    gamma: float) -> Tensor:
    """iRPE's piecewise index function, eq. 18.

    Offsets up to ``alpha`` have a bucket each; beyond, buckets grow with the
    logarithm until ``gamma``, from where on all are in bucket ``int(beta)``.
    Halves are rounded to even and the logarithm is taken in float32, as the
    reference does.

    Args:
        x (Tensor): Offsets in cells, signed.
        alpha (float): See above.
        beta (float): See above.
        gamma (float): See above.

    Returns:
        Tensor: int64, from ``-int(beta)`` to ``int(beta)``.
    """
    x = x.float()
    far = alpha + (beta - alpha) * (x.abs() / alpha).log() / math.log(
        gamma / alpha)
    far = far.round().clamp(max=int(beta)) * x.sign()
    return torch.where(x.abs() <= alpha, x.round(), far).long()


def clip_index(x: Tensor, beta: float) -> Tensor:
    """The clip index function: offsets beyond ``int(beta)`` share a bucket."""
    return x.float().round().clamp(-int(beta), int(beta)).long()


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


@dataclass(frozen=True)
class OffsetBuckets:
    """Buckets of offsets between a query and a key.

    Args:
        method (str): ``'euclidean'``, ``'quant'`` or ``'product'``; ``'rows'``
            and ``'cols'`` are the two halves of cross; ``'one'`` is one bucket
            for all; ``'exact'`` is one for each offset of a grid.
        index (str): One of ``INDICES``.
        params (tuple[float, ...]): alpha, beta and gamma; for ``'exact'``
            height and width of the grid.
        rank (bool): Whether ``quant`` takes the rank of the distance, as the
            paper's text says, rather than its square, as the code does.
            Defaults to False.
        flipped (bool): Whether offsets are of key minus query instead.
            Defaults to False.
        whole_cells (bool): Whether only offsets of whole cells have a meaning,
            as between pairs of tokens. Defaults to False.
        window (int, optional): Offsets beyond it along an axis are in one more
            bucket of that axis, its last. Defaults to no window.
    """
    method: str
    index: str
    params: Tuple[float, ...]
    rank: bool = False
    flipped: bool = False
    whole_cells: bool = False
    window: Optional[int] = None

    @property
    def side(self) -> int:
        """How many buckets an axis has."""
        return 2 * int(self.params[1]) + 1 + (self.window is not None)

    @property
    def count(self) -> int:
        if self.method == 'one':
            return 1
        if self.method == 'exact':
            h, w = self.params
            return (2 * h - 1) * (2 * w - 1)
        return self.side**2 if self.method == 'product' else self.side

    def __call__(self, dy: Tensor, dx: Tensor) -> Tensor:
        """Buckets of offsets, query minus key in cells, of any shape."""
        if self.flipped:
            dy, dx = -dy, -dx
        if self.method == 'product':
            return self._bucket(dy) * self.side + self._bucket(dx)
        if self.method in ('rows', 'cols'):
            return self._bucket(dy if self.method == 'rows' else dx)
        if self.method == 'one':
            return torch.zeros_like(dy + dx, dtype=torch.long)
        if self.method == 'exact':
            h, w = self.params
            return (dy + h - 1) * (2 * w - 1) + dx + w - 1
        square = dy**2 + dx**2
        if self.method == 'euclidean':
            return self._bucket(square.double().sqrt().round())
        return self._bucket(_rank(square) if self.rank else square)

    def _bucket(self, x: Tensor) -> Tensor:
        middle = int(self.params[1])
        if self.index == 'clip':
            bucket = clip_index(x, self.params[1]) + middle
        else:
            bucket = piecewise_index(x, *self.params) + middle
        if self.window is not None:
            bucket = bucket.masked_fill(x.abs() > self.window, self.side - 1)
        return bucket

    def axes(self, dy: Tensor,
             dx: Tensor) -> Optional[Tuple[Tensor, Tensor, int]]:
        """What :class:`BucketMap` calls axes, for offsets along each."""
        zero = torch.zeros_like
        if self.method == 'product':
            rows = self(dy, zero(dy)) // self.side
            return rows, self(zero(dx), dx) % self.side, self.side
        if self.method == 'rows':
            return self(dy, dy), zero(dx), 1
        if self.method == 'one':
            return zero(dy), zero(dx), 1
        if self.method == 'cols':
            return zero(dy), self(dx, dx), self.side
        if self.method == 'exact':
            h, w = self.params
            sign = -1 if self.flipped else 1
            return sign * dy + h - 1, sign * dx + w - 1, 2 * w - 1
        return None

    def sources(self, count: int, num_prefix: int) -> Tensor:
        """Which bucket of a table with ``count`` buckets each bucket of this
        one takes its numbers from: that of the offset in its middle, with the
        other's alpha, beta and gamma taken to be these times one factor.

        Args:
            count (int): Buckets of the other, with or without the prefix's.
            num_prefix (int): Prefix tokens of this one.

        Returns:
            Tensor: int64, one for each bucket; ``count`` where the other has
            none, which is a prefix's only.

        Raises:
            ValueError: If this method can't have that many buckets.
        """
        product = self.method == 'product'
        side = math.isqrt(count) if product else count - (count % 2 == 0)
        cells = side**2 if product else side
        if side % 2 == 0 or side < 3 or count - cells not in (0, 1):
            raise ValueError(f'no {self.method} map has {count} buckets')
        factor = (side // 2) / int(self.params[1])
        alpha, _, gamma = self.params
        other = replace(
            self, params=(alpha * factor, side // 2, gamma * factor))
        out = self._axis_sources(other)
        if product:
            out = (out[:, None] * side + out).flatten()
        if num_prefix:
            out = torch.cat([out, out.new_tensor([cells])])
        return out

    def _axis_sources(self, other: 'OffsetBuckets') -> Tensor:
        reach = math.ceil(max(self.params[-1], other.params[-1])) + 1
        x = torch.arange(-reach, reach + 1)
        own, theirs = self._bucket(x), other._bucket(x)
        middles = [theirs[own == i] for i in range(self.side)]
        ratio = (other.side - 1) / (self.side - 1)
        return torch.stack([
            m[len(m) // 2] if len(m) else torch.tensor(round(i * ratio))
            for i, m in enumerate(middles)
        ])

    def on(self, shape: Tuple[int, int], num_prefix: int,
           device: torch.device) -> BucketMap:
        """The map of a grid ``(h, w)`` with prefix tokens in front."""
        return _map_on(self, shape, num_prefix, device)


# For the grids last used: batches of changing shapes compute each once.
@lru_cache(maxsize=128)
def _map_on(buckets: OffsetBuckets, shape: Tuple[int, int], num_prefix: int,
            device: torch.device) -> BucketMap:
    with torch.inference_mode(False):  # what is kept serves training, too
        dy, dx = (torch.arange(1 - n, n) for n in shape)
        table = buckets(*torch.meshgrid(dy, dx, indexing='ij'))
        axes = buckets.axes(dy, dx)
        if axes is not None:
            axes = axes[0].to(device), axes[1].to(device), axes[2]
        return BucketMap(table.to(device), buckets.count, num_prefix, axes)


def _rank(square: Tensor) -> Tensor:
    """Rank of each squared distance among all that a lattice has."""
    side = torch.arange(
        math.isqrt(int(square.max())) + 2, device=square.device)
    distinct = (side[:, None]**2 + side**2).unique().to(square.dtype)
    return torch.searchsorted(distinct, square)
