"""Image relative position encoding."""
import re
from typing import Dict, List, Optional, Sequence, Tuple

import torch
from torch import nn

from mmpe.registry import MODELS
from .bucket_tables import BucketTables
from .buckets import INDICES, OffsetBuckets
from .grid import TokenGrid
from .terms import BucketTerm


@MODELS.register_module()
class ImageRPE(BucketTables):
    """iRPE: a learned number or vector per bucket of offsets, in attention.

    Paper: `Rethinking and Improving Relative Position Encoding for Vision
    Transformer <https://arxiv.org/abs/2107.14222>`_: eq. 12 (bias), 13 to 16
    (contextual on k, q, v), 18 (piecewise index), 19 to 27 (maps).

    Note:
        ``'quant'`` buckets the squared distance, as the authors' code does;
        their text says the rank of the distance (``quantize='rank'``).
        Their DETR fills the tables by Xavier's rule without meaning to
        (``init='xavier'``); here they begin at zero.

    Args:
        ratio (float): alpha, beta, gamma are ratio times 1, 2, 8.
            Defaults to 2.0.
        alpha (float, optional): Up to where each offset has a bucket.
            Defaults to ``ratio``.
        beta (float, optional): Its integer part is the last bucket.
            Defaults to ``2 * ratio``.
        gamma (float, optional): From where on all offsets are in the last
            bucket. Defaults to ``8 * ratio``.
        method (str): ``'euclidean'``, ``'quant'``, ``'cross'`` or
            ``'product'``. Defaults to ``'product'``.
        mode (str): ``'contextual'`` or ``'bias'``. Defaults to
            ``'contextual'``.
        target (str): Letters of q, k, v. Defaults to ``'k'``.
        shared_heads (bool): Whether heads share tables. Defaults to True.
        index (str): ``'piecewise'`` or ``'clip'``. Defaults to
            ``'piecewise'``.
        quantize (str): ``'square'`` or ``'rank'``. Defaults to ``'square'``.
        layers (Sequence[int], optional): Which layers have it. Defaults to
            all.
        init (str): ``'zero'`` or ``'xavier'``. Defaults to ``'zero'``.

    Raises:
        ValueError: If an argument has a value other than those above, bias is
            asked for on v, or buckets collapse.
    """
    name = 'irpe'

    def __init__(self,
                 ratio: float = 2.0,
                 alpha: Optional[float] = None,
                 beta: Optional[float] = None,
                 gamma: Optional[float] = None,
                 method: str = 'product',
                 mode: str = 'contextual',
                 target: str = 'k',
                 shared_heads: bool = True,
                 index: str = 'piecewise',
                 quantize: str = 'square',
                 layers: Optional[Sequence[int]] = None,
                 init: str = 'zero',
                 **host) -> None:
        super().__init__(**host)
        _one_of('method', method, ('euclidean', 'quant', 'cross', 'product'))
        _one_of('mode', mode, ('contextual', 'bias'))
        _one_of('index', index, INDICES)
        _one_of('quantize', quantize, ('square', 'rank'))
        _one_of('init', init, ('zero', 'xavier'))
        for name, value in dict(
                ratio=ratio, alpha=alpha, beta=beta, gamma=gamma).items():
            if not isinstance(value, (int, float)) and not (
                    value is None and name != 'ratio'):
                raise ValueError(f'{name} must be a number, got {value!r}')
        letters = set(target) if isinstance(target, str) else ()
        if not letters or letters - set('qkv') or len(letters) < len(target):
            raise ValueError(
                f"target must be distinct letters of 'qkv', got {target!r}")
        if mode == 'bias' and 'v' in target:
            raise ValueError("mode='bias' does not exist on v: target must be "
                             f"letters of 'qk', got {target!r}")
        self.method = method
        self.mode = mode
        self.target = target
        self.index = index
        self.rank = quantize == 'rank'
        self.init = init
        self.params = tuple(
            factor * ratio if value is None else value
            for factor, value in ((1, alpha), (2, beta), (8, gamma)))
        alpha, beta, gamma = self.params
        if not 0 < alpha < gamma or beta < 1 or (index == 'piecewise'
                                                 and beta <= alpha):
            raise ValueError(
                f'buckets collapse: alpha={alpha:g}, beta={beta:g}, '
                f'gamma={gamma:g} must have 0 < alpha < beta, alpha < gamma '
                'and beta at least 1; ratio must be above 0.5')
        layers = self.check_layers(
            range(self.num_layers) if layers is None else layers)
        heads = 1 if shared_heads else self.num_heads
        self.tables = nn.ModuleDict({
            str(i): nn.ParameterDict(self._make_tables(heads))
            for i in layers
        })
        self.fill()

    @classmethod
    def from_flag(cls, flag: str) -> Dict:
        """The config that a flag of the reference implementation stands for.

        Args:
            flag (str): ``rpe-RATIO-METHOD-MODE-SHARED-TARGET``, such as
                ``'rpe-2.0-product-ctx-1-k'``.

        Returns:
            dict: An item for ``positional_encoding``.

        Raises:
            ValueError: If a field is none of the reference's.
        """
        form = (r'rpe-(\d+(?:\.\d+)?)-(euc|quant|cross|product)-(ctx|bias)'
                r'-([01])-([qkv]+)')
        match = re.fullmatch(form, flag)
        if not match:
            raise ValueError(
                f'{flag!r} is not rpe-RATIO-METHOD-MODE-SHARED-TARGET with '
                'METHOD euc, quant, cross or product, MODE ctx or bias, '
                'SHARED 0 or 1 and TARGET letters of qkv')
        ratio, method, mode, shared, target = match.groups()
        return dict(
            type='mmpe.ImageRPE',
            ratio=float(ratio),
            method={'euc': 'euclidean'}.get(method, method),
            mode={'ctx': 'contextual'}.get(mode, mode),
            shared_heads=shared == '1',
            target=target)

    def _make_tables(self, heads: int) -> Dict[str, nn.Parameter]:
        side = 2 * int(self.params[1]) + 1
        count = side**2 if self.method == 'product' else side
        count += self.num_prefix > 0
        dim = self.embed_dims // self.num_heads
        parts = ['_rows', '_cols'] if self.method == 'cross' else ['']
        tables = {}
        for letter in self.target:
            shape = dict(
                bias=(heads, count),
                contextual=(heads, count, dim) if letter == 'v' else
                (heads, dim, count))[self.mode]
            for part in parts:
                tables[letter + part] = nn.Parameter(torch.zeros(shape))
        return tables

    def fill(self) -> None:
        """Zero, or Xavier's rule as the published DETR models had it."""
        if self.init == 'zero':
            super().fill()
        else:
            for table in self.parameters():
                nn.init.xavier_uniform_(table)

    def _buckets(self, key: str) -> OffsetBuckets:
        """Of the table ``key``, such as ``'k'`` or ``'q_rows'``."""
        letter, _, part = key.partition('_')
        return OffsetBuckets(
            part or self.method,
            self.index,
            self.params,
            self.rank,
            # A bias on q is that of the pair the other way round.
            flipped=self.mode == 'bias' and letter == 'q')

    def bucket_axes(self) -> Dict[str, Tuple[int, OffsetBuckets]]:
        return {
            f'tables.{i}.{key}': (1 if key[0] == 'v' else -1,
                                  self._buckets(key))
            for i, tables in self.tables.items() for key in tables
        }

    def terms(self, i: int, grid: TokenGrid) -> List[BucketTerm]:
        if str(i) not in self.tables:
            return []
        return [
            BucketTerm('bias' if self.mode == 'bias' else key[0], table,
                       self._buckets(key), grid)
            for key, table in self.tables[str(i)].items()
        ]


def _one_of(name: str, value: str, accepted: Sequence[str]) -> None:
    if value not in accepted:
        raise ValueError(f'{name} must be one of {", ".join(accepted)}, got '
                         f'{value!r}')
