"""What encodings of offsets give to an attention."""
from dataclasses import dataclass

from torch import Tensor

from .buckets import BucketMap, OffsetBuckets
from .grid import TokenGrid


@dataclass(frozen=True)
class BucketTerm:
    """What an attention takes from an encoding of offsets.

    With c the attention's scale and id(i, j) the bucket of query i and key j:

    - ``'k'`` adds ``c q_i . table[h, :, id(i, j)]`` to the logit;
    - ``'q'`` adds ``c k_j . table[h, :, id(j, i)]`` to it;
    - ``'bias'`` adds ``table[h, id(i, j)]`` to it;
    - ``'v'`` adds ``sum_j p_ij table[h, id(i, j), :]`` to the output, p the
      attention after its dropout.

    Args:
        target (str): One of these four.
        table (Tensor): ``(H or 1, D, nb)`` for k and q, ``(H or 1, nb)`` for
            a bias, ``(H or 1, nb, D)`` for v.
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
