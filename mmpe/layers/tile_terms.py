"""What each kind of bucket term does to a tile of attention."""
from typing import Dict, Tuple, Type, Union

import torch
from torch import Tensor

from mmpe.position.bucket_map import BucketMap
from .bucket_tiles import bucket_tiles, multiply, multiply_grads
from .scratch import Scratch

Form = Union[Tensor, Tuple[Tensor, ...]]


class TileTerm:
    """A bucket term of some heads, tile by tile.

    Args:
        map_ (BucketMap): The term's buckets.
        table (Tensor): The term's table, of these heads.
        dtable (Tensor): What the table's gradient is added to.
        content_k (Tensor): Keys ``(BH, N, D)``.
        dcontent_k (Tensor): What their gradient is added to.
        scale (float): The attention's.
        heads (int): H.
        scratch (Scratch): Where tiles are put.
    """

    def __init__(self, map_: BucketMap, table: Tensor, dtable: Tensor,
                 content_k: Tensor, dcontent_k: Tensor, scale: float,
                 heads: int, scratch: Scratch) -> None:
        self.table, self.dtable = table, dtable
        self.content_k, self.dcontent_k = content_k, dcontent_k
        self.scale, self.heads = scale, heads
        self.scratch = scratch
        self.tiles = bucket_tiles(map_, scratch)


class LogitTerm(TileTerm):
    """Adds to logits."""

    def logits(self, q: Tensor, tile: slice, out: Tensor) -> None:
        """Fill a tile ``(BH, n, N)``; ``q``, ``(BH, n, D)``, comes scaled."""
        raise NotImplementedError

    def backward(self, ds: Tensor, q: Tensor, dq: Tensor,
                 tile: slice) -> None:
        """Of a tile's logits; adds to the gradients."""
        raise NotImplementedError

    def finish(self) -> None:
        """After the last tile's backward."""


class KeyTerm(LogitTerm):
    """``c q_i . table[:, id(i, j)]``."""

    def logits(self, q: Tensor, tile: slice, out: Tensor) -> None:
        self.tiles.expand(multiply(q, self.table, self.heads), tile, out)

    def backward(self, ds: Tensor, q: Tensor, dq: Tensor,
                 tile: slice) -> None:
        dx, dtable = multiply_grads(q, self.table,
                                    self.tiles.reduce(ds, tile), self.heads)
        dq += dx
        self.dtable += dtable


class QueryTerm(LogitTerm):
    """``c k_j . table[:, id(j, i)]``."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        scores = multiply(self.scale * self.content_k, self.table, self.heads)
        self.form = self.tiles.prepare_keys(scores)
        self.dform = None

    def logits(self, q: Tensor, tile: slice, out: Tensor) -> None:
        self.tiles.expand_keys(self.form, tile, out)

    def backward(self, ds: Tensor, q: Tensor, dq: Tensor,
                 tile: slice) -> None:
        if self.dform is None:
            self.dform = _zeros_like(self.form)
        self.tiles.reduce_keys(ds, tile, self.dform)

    def finish(self) -> None:
        dx, dtable = multiply_grads(self.scale * self.content_k, self.table,
                                    self.tiles.finish_keys(self.dform),
                                    self.heads)
        self.dcontent_k.add_(dx, alpha=self.scale)
        self.dtable += dtable


class BiasTerm(LogitTerm):
    """``table[id(i, j)]``, the same for several images or heads or not."""

    def __init__(self, *args) -> None:
        super().__init__(*args)
        table = self.table
        if table.dim() == 3:  # each image has its own, each head may have
            table = table.expand(-1, self.heads, -1)
        self.form = self.tiles.prepare_bias(table.reshape(-1, table.shape[-1]))
        self.count = table[..., 0].numel()
        self.dform = None

    def logits(self, q: Tensor, tile: slice, out: Tensor) -> None:
        if self.count == len(out):
            self.tiles.expand_bias(self.form, tile, out)
        else:
            bias = self.scratch('bias', self.count, *out.shape[1:])
            self.tiles.expand_bias(self.form, tile, bias)
            out.unflatten(0, (-1, self.count)).copy_(bias)

    def backward(self, ds: Tensor, q: Tensor, dq: Tensor,
                 tile: slice) -> None:
        if self.dform is None:
            self.dform = _zeros_like(self.form)
        if self.count < len(ds):
            bias = self.scratch('bias', self.count, *ds.shape[1:])
            ds = torch.sum(ds.unflatten(0, (-1, self.count)), 0, out=bias)
        self.tiles.reduce_bias(ds, tile, self.dform)

    def finish(self) -> None:
        grad = self.tiles.finish_bias(self.dform)
        if self.table.dim() == 3:
            grad = grad.unflatten(0, (-1, self.heads))
        self.dtable += grad.sum_to_size(self.table.shape)


class ValueTerm(TileTerm):
    """``sum_j p_ij table[id(i, j), :]``, added to outputs."""

    def output(self, p: Tensor, tile: slice) -> Tensor:
        """``(BH, n, D)``."""
        return multiply(self.tiles.reduce(p, tile), self.table, self.heads)

    def backward(self, p: Tensor, grad: Tensor, dp: Tensor,
                 tile: slice) -> None:
        """Of a tile's output; adds to the gradients of ``p`` and the table.
        """
        dx, dtable = multiply_grads(
            self.tiles.reduce(p, tile), self.table, grad, self.heads)
        x = self.scratch('term', *dp.shape)
        dp += self.tiles.expand(dx, tile, x)
        self.dtable += dtable


LOGIT_TERMS: Dict[str, Type[LogitTerm]] = dict(
    k=KeyTerm, q=QueryTerm, bias=BiasTerm)


def _zeros_like(form: Form) -> Form:
    if isinstance(form, tuple):
        return tuple(torch.zeros_like(x) for x in form)
    return torch.zeros_like(form)
