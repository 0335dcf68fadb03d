"""Which bucket the offset between two cells falls into (iRPE, sec. 3.2)."""
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Optional, Tuple

import torch
from torch import Tensor

from .bucket_map import BucketMap

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
