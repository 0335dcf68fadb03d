"""The relative encodings that iRPE's paper compares with, in two dimensions.

All are made two-dimensional as its supplement did: offsets along both axes are
clipped to K cells (or bucketed by iRPE's piecewise function), tables are
shared by heads. In the equations i is a query, j a key and d a head's width.
"""
from typing import List

import torch
import torch.nn.functional as F
from torch import nn

from mmpe.registry import MODELS
from .base import PositionEncoding
from .grid import TokenGrid
from .buckets import INDICES, OffsetBuckets
from .terms import BucketTerm


class _OffsetEncoding(PositionEncoding):
    """Common to all: the buckets, and tables that begin at zero.

    Args:
        max_distance (int): K, in cells. Defaults to 8.
        index (str): ``'clip'`` or ``'piecewise'``, then with alpha, beta,
            gamma = K/2, K, 4K. Defaults to ``'clip'``.
    """

    def __init__(self,
                 max_distance: int = 8,
                 index: str = 'clip',
                 **host) -> None:
        super().__init__(**host)
        if not isinstance(max_distance, int) or max_distance < 1:
            raise ValueError('max_distance must be a positive number of '
                             f'cells, got {max_distance!r}')
        if index not in INDICES:
            raise ValueError(f'index must be one of {", ".join(INDICES)}, '
                             f'got {index!r}')
        self.head_dims = self.embed_dims // self.num_heads
        self._index = index
        self._params = tuple(max_distance * f for f in (0.5, 1., 4.))
        self.side = 2 * max_distance + 1

    def _buckets(self, method: str, flipped: bool = False) -> OffsetBuckets:
        return OffsetBuckets(
            method,
            self._index,
            self._params,
            flipped=flipped,
            whole_cells=True)

    def _tables(self, *shape: int) -> nn.ParameterList:
        """One for each layer."""
        return nn.ParameterList(
            nn.Parameter(torch.zeros(shape)) for _ in range(self.num_layers))

    def init_weights(self) -> None:
        self._fill()
        super().init_weights()

    def _fill(self) -> None:
        for table in self.parameters():
            nn.init.zeros_(table)


@MODELS.register_module()
class ShawRPE(_OffsetEncoding):
    """Vectors on keys and values.

    e_ij = q_i . (k_j + a^K_ij) / sqrt(d), z_i = sum_j alpha_ij (v_j + a^V_ij).

    Paper: `Self-Attention with Relative Position Representations
    <https://arxiv.org/abs/1803.02155>`_, eq. 3 and 4.

    Args:
        max_distance (int): K, in cells. Defaults to 8.
        index (str): ``'clip'`` or ``'piecewise'``. Defaults to ``'clip'``.
    """
    name = 'shaw'

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self.keys = self._tables(1, self.head_dims, self.side**2)
        self.values = self._tables(1, self.side**2, self.head_dims)

    def terms(self, i: int, grid: TokenGrid) -> List[BucketTerm]:
        buckets = self._buckets('product')
        return [
            BucketTerm('k', self.keys[i], buckets, grid),
            BucketTerm('v', self.values[i], buckets, grid)
        ]


@MODELS.register_module()
class HuangRPE(_OffsetEncoding):
    """One vector on queries and keys alike.

    e_ij = ((q_i + p_ij) . (k_j + p_ij) - p_ij . p_ij) / sqrt(d).

    Paper: `Improve Transformer Models with Better Relative Position Embeddings
    <https://arxiv.org/abs/2009.13658>`_, method 4.

    Args:
        max_distance (int): K, in cells. Defaults to 8.
        index (str): ``'clip'`` or ``'piecewise'``. Defaults to ``'clip'``.
    """
    name = 'huang'

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        self.pairs = self._tables(1, self.head_dims, self.side**2)

    def terms(self, i: int, grid: TokenGrid) -> List[BucketTerm]:
        table = self.pairs[i]
        return [
            BucketTerm('k', table, self._buckets('product'), grid),
            # A term on q is looked up by (j, i), so turn that round again.
            BucketTerm('q', table, self._buckets('product', flipped=True),
                       grid)
        ]


@MODELS.register_module()
class SASARPE(_OffsetEncoding):
    """Half a vector for the column and half for the row, on keys.

    e_ij = q_i . (k_j + concat(p^x_ij, p^y_ij)) / sqrt(d).

    Paper: `Stand-Alone Self-Attention in Vision Models
    <https://arxiv.org/abs/1906.05909>`_, eq. 3.

    Args:
        max_distance (int): K, in cells. Defaults to 8.
        index (str): ``'clip'`` or ``'piecewise'``. Defaults to ``'clip'``.

    Raises:
        ValueError: If a head's width is odd.
    """
    name = 'sasa'

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        if self.head_dims % 2:
            raise ValueError(f"a head's width, {self.head_dims}, must be even")
        self.cols = self._tables(1, self.head_dims // 2, self.side)
        self.rows = self._tables(1, self.head_dims // 2, self.side)

    def terms(self, i: int, grid: TokenGrid) -> List[BucketTerm]:
        half = self.head_dims // 2
        cols = F.pad(self.cols[i], (0, 0, 0, half))
        rows = F.pad(self.rows[i], (0, 0, half, 0))
        return [
            BucketTerm('k', cols, self._buckets('cols'), grid),
            BucketTerm('k', rows, self._buckets('rows'), grid)
        ]


@MODELS.register_module()
class TransformerXLRPE(_OffsetEncoding):
    """A projected sinusoid of the offset, and two learned queries.

    e_ij = (q_i.k_j + q_i.W s_ij + u.k_j + t.W s_ij) / sqrt(d), where s_ij is a
    sinusoid of dx in its first half and of dy in the other, u and t are
    vectors of each head.

    Paper: `Transformer-XL: Attentive Language Models Beyond a Fixed-Length
    Context <https://arxiv.org/abs/1901.02860>`_, sec. 3.3.

    Args:
        max_distance (int): Where offsets are clipped, in cells.
            Defaults to 8.
        index (str): ``'clip'`` or ``'piecewise'``; with the latter s is of the
            bucket's number. Defaults to ``'clip'``.

    Raises:
        ValueError: If the width isn't a multiple of four.
    """
    name = 'transformer_xl'

    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        if self.embed_dims % 4:
            raise ValueError(
                f'the width, {self.embed_dims}, must be a multiple of four')
        self.project = self._tables(self.embed_dims, self.embed_dims)
        self.content_query = self._tables(self.num_heads, self.head_dims)
        self.offset_query = self._tables(self.num_heads, self.head_dims)
        half = self.embed_dims // 2
        offset = torch.arange(self.side)[:, None] - self.side // 2
        angle = offset / 10000**(torch.arange(0, half, 2) / half)
        self.register_buffer(
            'waves',
            torch.stack([angle.sin(), angle.cos()], 2).flatten(1),
            persistent=False)
        self._fill()

    def _fill(self) -> None:
        # At zero nothing here would get a gradient.
        super()._fill()
        for weight in self.project:
            nn.init.xavier_uniform_(weight)

    def terms(self, i: int, grid: TokenGrid) -> List[BucketTerm]:
        shape = self.num_heads, self.head_dims, self.side
        scale = self.head_dims**-0.5
        terms = [
            BucketTerm('q', self.content_query[i][..., None],
                       self._buckets('one'), grid)
        ]
        halves = self.project[i].chunk(2, dim=1)
        for half, method in zip(halves, ('cols', 'rows')):
            table = (half @ self.waves.T).view(shape)
            bias = scale * (self.offset_query[i][:, None] @ table)[:, 0]
            buckets = self._buckets(method)
            terms += [
                BucketTerm('k', table, buckets, grid),
                BucketTerm('bias', bias, buckets, grid)
            ]
        return terms
