"""The relative encodings that iRPE's paper compares with, in two dimensions.

All are made two-dimensional as its supplement did: offsets along both axes are
clipped to K cells (or bucketed by iRPE's piecewise function), tables are
shared by heads. In the equations i is a query, j a key and d a head's width.
"""
from typing import Dict, List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmpe.registry import MODELS
from .bucket_tables import BucketTables
from .buckets import INDICES, OffsetBuckets
from .grid import TokenGrid
from .terms import BucketTerm, LogitScale, Term


class _OffsetEncoding(BucketTables):
    """Common to all: the buckets of whole offsets, and one more for pairs
    with a prefix token.

    Args:
        max_distance (int): K, in cells. Defaults to 8.
        index (str): ``'clip'`` or ``'piecewise'``, then with alpha, beta,
            gamma = K/2, K, 4K. Defaults to ``'clip'``.

    Raises:
        ValueError: If an argument has another value, or a head's width can't
            be split.
    """
    layout: Dict[str, Tuple[str, int]] = {}
    """Names of tables; their map, and the axis that counts its buckets."""
    parts = 1
    """How many tables a head's width is made of."""

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
        if self.head_dims % self.parts:
            raise ValueError(f"a head's width, {self.head_dims}, must be a "
                             f'multiple of {self.parts}')
        self._index = index
        self._params = tuple(max_distance * f for f in (0.5, 1., 4.))
        for name, (method, axis) in self.layout.items():
            shape = [1, self.head_dims // self.parts]
            shape.insert(axis % 3, self._count(method))
            setattr(self, name, self._tables(*shape))

    def _count(self, method: str) -> int:
        return self._buckets(method).count + (self.num_prefix > 0)

    def _buckets(self, method: str, **kwargs) -> OffsetBuckets:
        return OffsetBuckets(
            method, self._index, self._params, whole_cells=True, **kwargs)

    def _tables(self, *shape: int) -> nn.ParameterList:
        """One for each layer."""
        return nn.ParameterList(
            nn.Parameter(torch.zeros(shape)) for _ in range(self.num_layers))

    def bucket_axes(self) -> Dict[str, Tuple[int, OffsetBuckets]]:
        return {
            f'{name}.{i}': (axis, self._buckets(method))
            for name, (method, axis) in self.layout.items()
            for i in range(self.num_layers)
        }


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
    layout = dict(keys=('product', -1), values=('product', 1))

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
    layout = dict(pairs=('product', -1))

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
    layout = dict(cols=('cols', -1), rows=('rows', -1))
    parts = 2

    def terms(self, i: int, grid: TokenGrid) -> List[BucketTerm]:
        half = self.head_dims // 2
        cols = F.pad(self.cols[i], (0, 0, 0, half))
        rows = F.pad(self.rows[i], (0, 0, half, 0))
        return [
            BucketTerm('k', cols, self._buckets('cols'), grid),
            BucketTerm('k', rows, self._buckets('rows'), grid)
        ]


@MODELS.register_module()
class AxialDeepLabRPE(_OffsetEncoding):
    """Vectors on queries, keys and values, within a window.

    e_ij = q_i . k_j + q_i . r^q_ij + k_j . r^k_ij,
    z_i = sum_j alpha_ij (v_j + r^v_ij), over the j of the window of i.

    Paper: `Axial-DeepLab: Stand-Alone Axial-Attention for Panoptic
    Segmentation <https://arxiv.org/abs/2003.07853>`_, eq. 3.

    Note:
        As in the paper, logits aren't divided by sqrt(d). Its batch norms of
        the logits' summands and its two separate axes aren't part of this.

    Args:
        max_distance (int): K, in cells, how far the window reaches.
            Defaults to 8.
        index (str): ``'clip'`` or ``'piecewise'``; with the latter the window
            reaches 4K cells. Defaults to ``'clip'``.
    """
    name = 'axial_deeplab'
    layout = dict(
        queries=('product', -1), keys=('product', -1), values=('product', 1))

    @property
    def changes_nothing(self) -> bool:
        return False  # it has another scale, and a window

    def terms(self, i: int, grid: TokenGrid) -> List[Term]:
        window = int(self._params[1 if self._index == 'clip' else 2])
        buckets = self._buckets('product', window=window)
        flipped = self._buckets('product', window=window, flipped=True)
        values = self.values[i].transpose(1, 2)
        zeros = values.new_zeros(1, values.shape[-1])
        outside = self._with_outside(zeros, -1e4)
        return [
            LogitScale(1.),
            BucketTerm('k', self._with_outside(self.queries[i]), buckets,
                       grid),
            # A term on q is looked up by (j, i), so turn that round again.
            BucketTerm('q', self._with_outside(self.keys[i]), flipped, grid),
            BucketTerm('v', self._with_outside(values).transpose(1, 2),
                       buckets, grid),
            # Not infinite: a padded cell may have nothing else in its window.
            BucketTerm('bias', outside, buckets, grid)
        ]

    def _with_outside(self, table: Tensor, value: float = 0.) -> Tensor:
        """Put the buckets beyond the window into a table without them."""
        side = self._buckets('product').side
        cells = table[..., :side**2].unflatten(-1, (side, side))
        cells = F.pad(cells, (0, 1, 0, 1), value=value)
        return torch.cat([cells.flatten(-2), table[..., side**2:]], -1)


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
        side = self._buckets('rows').side
        offset = torch.arange(side)[:, None] - side // 2
        angle = offset / 10000**(torch.arange(0, half, 2) / half)
        waves = torch.stack([angle.sin(), angle.cos()], 2).flatten(1)
        # A prefix token has no offset, so its pairs get zero.
        waves = F.pad(waves, (0, 0, 0, self._count('rows') - side))
        self.register_buffer('waves', waves, persistent=False)
        self.fill()

    def fill(self) -> None:
        # At zero nothing here would get a gradient.
        super().fill()
        for weight in self.project:
            nn.init.xavier_uniform_(weight)

    def terms(self, i: int, grid: TokenGrid) -> List[BucketTerm]:
        shape = self.num_heads, self.head_dims, self._count('rows')
        scale = self.head_dims**-0.5
        content = self.content_query[i][..., None]
        terms = [
            BucketTerm('q', content.expand(-1, -1, self._count('one')),
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
