"""Attention a row of queries at a time: nothing of size N x M is ever there.
"""
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mmpe.position.bucket_map import BucketMap
from mmpe.position.terms import BucketTerm
from .replayed_dropout import keep_mask
from .scratch import Scratch
from .tile_terms import LOGIT_TERMS, ValueTerm

TILE_NUMBERS = 2**19
"""How many numbers a tile has, or fewer: what a CPU's caches hold."""


def tiled_attention(q: Tensor, k: Tensor, v: Tensor, content_q: Tensor,
                    content_k: Tensor, scale: float, mask: Optional[Tensor],
                    dropout: float, terms: Sequence[BucketTerm]) -> Tensor:
    """Attention with bucket terms.

    Args:
        q (Tensor): Queries times ``scale``, ``(B, H, N, D)``.
        k (Tensor): Keys, ``(B, H, M, D)``.
        v (Tensor): Values, ``(B, H, M, D)``.
        content_q (Tensor): What terms see for ``q``: itself if it isn't
            rotated.
        content_k (Tensor): The same for ``k``.
        scale (float): c.
        mask (Tensor, optional): Broadcastable to ``(B, H, N, M)``; bool, True
            is attended, or float, added to the logits and constant.
        dropout (float): Probability of dropping an attention weight.
        terms (Sequence[BucketTerm]): See there.

    Returns:
        Tensor: ``(B, H, N, D)``.
    """
    # From the generator that checkpointing restores before it runs again.
    seed = int(torch.randint(2**62, ())) if dropout else 0
    contents = (None, None) if content_q is q else (content_q, content_k)
    settings = _Settings(scale, mask, dropout, seed,
                         [(term.target, term.map) for term in terms])
    return _TiledAttention.apply(settings, q, k, v, *contents,
                                 *[term.table for term in terms])


class _Settings(NamedTuple):
    scale: float
    mask: Optional[Tensor]
    dropout: float
    seed: int
    terms: List[Tuple[str, BucketMap]]


class _TiledAttention(torch.autograd.Function):
    """The backward computes each tile's weights again, and its dropout from
    the seed."""

    @staticmethod
    def forward(ctx, settings, *tensors):
        # Contiguous, so that parts can be written to.
        out = tensors[0].new_empty(tensors[0].shape)
        for part in _parts(settings, tensors):
            part.forward(out)
        ctx.save_for_backward(out, *tensors)
        ctx.settings = settings
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        out, *tensors = ctx.saved_tensors
        grads = [None if x is None else x.new_zeros(x.shape) for x in tensors]
        # A backward may be called under autocast.
        with torch.autocast(grad.device.type, enabled=False):
            for part in _parts(ctx.settings, tensors, grads):
                part.backward(grad, out)
        return None, *grads


def _parts(settings: _Settings,
           tensors: Sequence[Optional[Tensor]],
           grads: Optional[Sequence[Optional[Tensor]]] = None
           ) -> Iterator['_Part']:
    """Some images' or some heads' attention each, whose tiles are small."""
    q, k = tensors[:2]
    batch, heads = q.shape[:2]
    tiles = _tiles(q.shape[2], k.shape[2], settings.terms)
    largest = max(tile.stop - tile.start for tile in tiles) * k.shape[2]
    fit = max(1, TILE_NUMBERS // largest)
    scratch = Scratch(q)
    for b in _slices(batch, max(1, fit // heads)) if batch else ():
        for h in _slices(heads, fit):
            yield _Part(settings, tensors, grads, b, h, tiles, scratch)


def _slices(count: int, most: int) -> List[slice]:
    """As few as possible, of about the same length."""
    number = -(-count // most)
    bounds = [count * i // number for i in range(number + 1)]
    return [slice(a, b) for a, b in zip(bounds, bounds[1:])]


def _tiles(queries: int, keys: int,
           terms: Sequence[Tuple[str, BucketMap]]) -> List[slice]:
    """Slices of queries: prefix and rows of the grid, or any of that size."""
    prefix, step = 0, max(1, 32768 // keys)
    if terms:
        prefix, step = terms[0][1].num_prefix, terms[0][1].shape[1]
    # A long row of a grid is cut, too.
    part = min(step, max(1, TILE_NUMBERS // keys))
    starts = [0] if prefix else []
    for row in range(prefix, queries, step):
        starts += range(row, min(row + step, queries), part)
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], queries])]


class _Part:
    """The attention of some images and heads, which its tensors have in one
    dimension."""

    def __init__(self, settings: _Settings,
                 tensors: Sequence[Optional[Tensor]],
                 grads: Optional[Sequence[Optional[Tensor]]], b: slice,
                 h: slice, tiles: List[slice], scratch: Scratch) -> None:
        self.where = b, h
        self.heads = h.stop - h.start
        self.tiles = tiles
        self.scratch = scratch
        self.dropout = settings.dropout
        queries, heads = tensors[0].shape[2], tensors[0].shape[1]
        # No two tiles have the same.
        self.seed = settings.seed + (b.start * heads + h.start) * queries
        self.mask = settings.mask
        if self.mask is not None:
            missing = 4 - self.mask.dim()
            self.mask = _at(self.mask[(None, ) * missing], b, h)
        self.q, self.k, self.v, *content = map(self._heads, tensors[:5])
        self.content_q = self.q if content[0] is None else content[0]
        content_k = self.k if content[1] is None else content[1]

        dcontent_k = None
        dtables = [None] * len(settings.terms)
        if grads:
            self.dq, self.dk, self.dv, *content = map(self._heads, grads[:5])
            self.dcontent_q = self.dq if content[0] is None else content[0]
            dcontent_k = self.dk if content[1] is None else content[1]
            dtables = grads[5:]
        self.terms, self.value_terms = [], []
        for (target, map_), table, dtable in zip(settings.terms, tensors[5:],
                                                 dtables):
            of_images = target == 'bias' and table.dim() == 3
            at = (b, h) if of_images else (h, )
            term = (ValueTerm if target == 'v' else LOGIT_TERMS[target])(
                map_, _at(table, *at), dtable if dtable is None else _at(
                    dtable, *at), content_k, dcontent_k, settings.scale,
                self.heads, scratch)
            (self.value_terms if target == 'v' else self.terms).append(term)

    def _heads(self, x: Optional[Tensor]) -> Optional[Tensor]:
        """This part of ``(B, H, N, D)`` as ``(BH, N, D)``."""
        return None if x is None else x[self.where].flatten(0, 1)

    def forward(self, out: Tensor) -> None:
        """Fill the output's part."""
        out = self._heads(out)
        for tile in self.tiles:
            p = self._weights(tile)
            keep = self._keep(p, tile)
            p = p if keep is None else p.mul_(keep)
            o = torch.bmm(p, self.v)
            for term in self.value_terms:
                o += term.output(p, tile)
            out[:, tile] = o

    def backward(self, grad: Tensor, out: Tensor) -> None:
        """Fill the gradients' part."""
        grad, out = self._heads(grad), self._heads(out)
        delta = (grad * out).sum(-1, keepdim=True)
        for tile in self.tiles:
            q, g = self.q[:, tile], grad[:, tile]
            p = self._weights(tile)
            keep = self._keep(p, tile)
            kept = p if keep is None else torch.mul(
                p, keep, out=self.scratch('kept', *p.shape))
            self.dv.baddbmm_(kept.transpose(1, 2), g)
            ds = self.scratch('ds', *p.shape)
            torch.bmm(g, self.v.transpose(1, 2), out=ds)
            for term in self.value_terms:
                term.backward(kept, g, ds, tile)
            if keep is not None:
                ds.mul_(keep)
            ds.sub_(delta[:, tile]).mul_(p)
            self.dk.baddbmm_(ds.transpose(1, 2), q)
            self.dq[:, tile] += torch.bmm(ds, self.k)
            for term in self.terms:
                term.backward(ds, self.content_q[:, tile],
                              self.dcontent_q[:, tile], tile)
        for term in self.terms:
            term.finish()

    def _weights(self, tile: slice) -> Tensor:
        """Softmax of a tile's logits, ``(BH, n, M)``, in scratch memory."""
        q, kt = self.q[:, tile], self.k.transpose(1, 2)
        shape = q.shape[0], q.shape[1], kt.shape[2]
        logits = self.scratch('logits', *shape)
        for i, term in enumerate(self.terms):
            x = self.scratch('term', *shape) if i else logits
            term.logits(self.content_q[:, tile], tile, x)
            if i:
                logits += x
        logits.baddbmm_(q, kt, beta=int(bool(self.terms)))
        if self.mask is not None:
            logits.unflatten(0, (-1, self.heads)).add_(self._additive(tile))
        # Each row is read before it is written.
        return torch.softmax(logits, -1, out=logits)

    def _additive(self, tile: slice) -> Tensor:
        mask = self.mask
        if mask.shape[2] > 1:
            mask = mask[:, :, tile]
        if mask.dtype != torch.bool:
            return mask
        zeros = self.q.new_zeros(mask.shape)
        # Finite, for a query that may attend to nothing.
        return zeros.masked_fill_(~mask, torch.finfo(zeros.dtype).min)

    def _keep(self, p: Tensor, tile: slice) -> Optional[Tensor]:
        """1 / (1 - dropout) where a weight is kept, else 0."""
        if not self.dropout:
            return None
        return keep_mask(p, self.dropout, self.seed + tile.start, self.scratch)


def _at(x: Tensor, *slices: slice) -> Tensor:
    """Slices of the first dimensions but those of length one."""
    return x[tuple(
        s if n > 1 else slice(None) for s, n in zip(slices, x.shape))]
