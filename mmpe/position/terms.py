"""What encodings give to an attention."""
from dataclasses import dataclass
from typing import Union

import torch
from torch import Tensor

from .bucket_map import BucketMap
from .buckets import OffsetBuckets
from .grid import TokenGrid


@dataclass(frozen=True)
class BucketTerm:
    """What an attention adds for the bucket of each pair's offset.

    With c the attention's scale and id(i, j) the bucket of query i and key j:

    - ``'k'`` adds ``c q_i . table[h, :, id(i, j)]`` to the logit;
    - ``'q'`` adds ``c k_j . table[h, :, id(j, i)]`` to it;
    - ``'bias'`` adds ``table[h, id(i, j)]`` to it;
    - ``'v'`` adds ``sum_j p_ij table[h, id(i, j), :]`` to the output, p the
      attention after its dropout.

    Args:
        target (str): One of these four.
        table (Tensor): ``(H or 1, D, nb)`` for k and q, ``(H or 1, nb, D)``
            for v, ``(H or 1, nb)`` or, where each image has its own,
            ``(B, H or 1, nb)`` for a bias.
        buckets (OffsetBuckets): id above.
        grid (TokenGrid): How queries and keys lie.
    """
    target: str
    table: Tensor
    buckets: OffsetBuckets
    grid: TokenGrid

    @property
    def map(self) -> BucketMap:
        """Buckets of all pairs of the grid.

        Raises:
            ValueError: If the grid has several levels.
        """
        if len(self.grid.shapes) != 1:
            raise ValueError('relative encodings of pairs need the tokens of '
                             f'one level, got the grids {self.grid.shapes}')
        return self.buckets.on(self.grid.shapes[0], self.grid.num_prefix,
                               self.grid.device)


@dataclass(frozen=True)
class PairBias:
    """What an attention adds to its logits, ``(H or 1, N, N)``: for small and
    fixed grids, since it has a number for each pair."""
    bias: Tensor


@dataclass(frozen=True)
class LogitScale:
    """What an attention multiplies logits with, instead of D^-0.5."""
    scale: float


@dataclass(frozen=True)
class Rotation:
    """What an attention turns queries and keys by before their product.

    The pair (x_2i, x_2i+1) of a head is turned by the i-th angle of its token
    (RoFormer, eq. 34). Bucket terms see queries and keys that aren't turned,
    for a turned one depends on where it is.

    Args:
        angles (Tensor): Radians, ``(B or 1, H or 1, N, D / 2)``.
    """
    angles: Tensor

    def turn(self, x: Tensor) -> Tensor:
        """``(B, H, N, D)``, in the type of ``x``."""
        # Angles grow with the tokens, beyond what half precision can tell.
        exact = torch.promote_types(x.dtype, torch.float32)
        pairs = torch.view_as_complex(x.to(exact).unflatten(-1, (-1, 2)))
        angles = self.angles.to(exact)
        turned = pairs * torch.polar(torch.ones_like(angles), angles)
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)


Term = Union[BucketTerm, LogitScale, PairBias, Rotation]
