"""Attention with terms per bucket of offsets, a row of queries at a time."""
from typing import List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from mmpe.position.buckets import BucketMap
from mmpe.position.terms import BucketTerm
from .bucket_ops import (expand, expand_keys, multiply, multiply_grads, reduce,
                         reduce_keys)
from .replayed_dropout import keep_mask

DENSE_TOKENS = 512
"""Up to here all pairs at once are faster; beyond, none are kept."""


@torch.compiler.disable  # its loop over tiles would be unrolled
def bucket_attention(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor],
                     dropout: float, terms: Sequence[BucketTerm]) -> Tensor:
    """``softmax(c q k^T + terms) v + terms``, c = D^-0.5, in float32.

    Args:
        q (Tensor): ``(B, H, N, D)``.
        k (Tensor): ``(B, H, M, D)``.
        v (Tensor): ``(B, H, M, D)``.
        mask (Tensor, optional): broadcastable to ``(B, H, N, M)``; bool, True
            is attended, or float, added to the logits. No gradient reaches it
            above ``DENSE_TOKENS``.
        dropout (float): Probability of dropping an attention weight.
        terms (Sequence[BucketTerm]): See there. With terms N equals M.

    Returns:
        Tensor: ``(B, H, N, D)`` in the type of ``v``.

    Raises:
        ValueError: If a term's grid has another number of tokens.
    """
    for term in terms:
        if not term.map.num_tokens == q.shape[2] == k.shape[2]:
            raise ValueError(
                f'the position encoding is for {term.map.num_tokens} tokens, '
                f'the attention has {q.shape[2]} queries and {k.shape[2]} '
                'keys')
    with torch.autocast(q.device.type, enabled=False):
        # Softmax and tables need the precision under autocast.
        scale = q.shape[-1]**-0.5
        out = (
            dense_attention if k.shape[2] <= DENSE_TOKENS else tiled_attention
        )(q.float() * scale, k.float(), v.float(), scale, mask, dropout, terms)
    return out.to(v.dtype)


def dense_attention(q: Tensor, k: Tensor, v: Tensor, scale: float,
                    mask: Optional[Tensor], dropout: float,
                    terms: Sequence[BucketTerm]) -> Tensor:
    """All pairs at once; ``q`` comes scaled."""
    logits = q @ k.transpose(-2, -1)
    for term in terms:
        if term.target == 'bias':
            logits = logits + term.table[:, term.map.all_ids]
        elif term.target == 'k':
            logits = logits + _pick(q @ term.table, term.map)
        elif term.target == 'q':
            keys = _pick(scale * k @ term.table, term.map)
            logits = logits + keys.transpose(-2, -1)
    if mask is not None:
        logits = (
            logits.masked_fill(~mask, -torch.inf)
            if mask.dtype == torch.bool else logits + mask)
    p = torch.dropout(logits.softmax(-1), dropout, dropout > 0)
    out = p @ v
    for term in terms:
        if term.target == 'v':
            sums = p.new_zeros(*p.shape[:3], term.map.num_buckets)
            ids = term.map.all_ids.expand_as(p)
            out = out + sums.scatter_add(3, ids, p) @ term.table
    return out


def _pick(scores: Tensor, map_: BucketMap) -> Tensor:
    """``(B, H, N, nb)`` scores by bucket to ``(B, H, N, N)`` by pair."""
    ids = map_.all_ids
    return scores.gather(3, ids.expand(*scores.shape[:2], -1, -1))


def tiled_attention(q: Tensor, k: Tensor, v: Tensor, scale: float,
                    mask: Optional[Tensor], dropout: float,
                    terms: Sequence[BucketTerm]) -> Tensor:
    """Nothing of size N x M, forward or kept; ``q`` comes scaled."""
    # From the generator that checkpointing restores before it runs again.
    seed = int(torch.randint(2**62, ())) if dropout else 0
    return _TiledAttention.apply(
        q, k, v, scale, mask, dropout, seed,
        [(term.target, term.map) for term in terms],
        *[term.table for term in terms])


class _TiledAttention(torch.autograd.Function):
    """The backward computes each tile's weights again, from the logarithm of
    the sum of exponentials, and its dropout from the seed."""

    @staticmethod
    def forward(ctx, q, k, v, scale, mask, dropout, seed, terms, *tables):
        batch = _Batch(q, k, v, scale, mask, dropout, seed, terms, tables)
        out = torch.empty_like(batch.q)
        lse = q.new_empty(batch.q.shape[:2])
        for tile in batch.tiles:
            p = batch.logits(tile)
            lse[:, tile] = torch.logsumexp(p, -1)
            p.sub_(lse[:, tile, None]).exp_()
            p = batch.drop(p, tile)
            out[:, tile] = batch.output(p, tile)
        ctx.save_for_backward(q, k, v, mask, out, lse, *tables)
        ctx.rest = scale, dropout, seed, terms
        return out.view_as(q)

    @staticmethod
    def backward(ctx, grad):
        q, k, v, mask, out, lse, *tables = ctx.saved_tensors
        scale, dropout, seed, terms = ctx.rest
        batch = _Batch(q, k, v, scale, mask, dropout, seed, terms, tables)
        grads = batch.gradients(grad.flatten(0, 1).contiguous(), out, lse)
        dq, dk, dv, *dtables = grads
        return (dq.view_as(q), dk.view_as(k), dv.view_as(v), None, None, None,
                None, None, *dtables)


class _Batch:
    """One batch's attention, with heads in the batch dimension."""

    def __init__(self, q, k, v, scale, mask, dropout, seed, terms, tables):
        self.heads = q.shape[1]
        self.q, self.k, self.v = (x.flatten(0, 1) for x in (q, k, v))
        self.mask = mask
        self.dropout, self.seed = dropout, seed
        self.scale = scale
        self.terms = [(*term, table) for term, table in zip(terms, tables)]
        self.scores = [  # of each key with each bucket, where that is needed
            multiply(scale * self.k, table, self.heads)
            if target == 'q' else None for target, _, table in self.terms
        ]
        self.tiles = _tiles(q.shape[2], k.shape[2],
                            terms[0][1] if terms else None)

    def logits(self, tile: slice) -> Tensor:
        """``(BH, n, M)``."""
        q = self.q[:, tile]
        total = None
        for (target, map_, table), scores in zip(self.terms, self.scores):
            if target == 'k':
                x = expand(map_, multiply(q, table, self.heads), tile)
            elif target == 'q':
                x = expand_keys(map_, scores, tile)
            elif target == 'bias':
                x = table[:, None].expand(-1, q.shape[1], -1)
                x = expand(map_, x, tile)
                x = x.repeat(len(q) // len(x), 1, 1)
            else:
                continue
            total = x if total is None else total.add_(x)
        kt = self.k.transpose(1, 2)
        total = (
            torch.bmm(q, kt) if total is None else total.baddbmm_(q, kt))
        if self.mask is not None:
            self._mask(total, tile)
        return total

    def _mask(self, logits: Tensor, tile: slice) -> None:
        mask = self.mask
        if mask.shape[-2] > 1:
            mask = mask[..., tile, :]
        logits = logits.unflatten(0, (-1, self.heads))
        if mask.dtype == torch.bool:
            logits.masked_fill_(~mask, -torch.inf)
        else:
            logits.add_(mask)

    def keep(self, p: Tensor, tile: slice) -> Optional[Tensor]:
        """1 / (1 - dropout) where a weight is kept, else 0."""
        if not self.dropout:
            return None
        return keep_mask(p, self.dropout, self.seed + tile.start)

    def drop(self, p: Tensor, tile: slice) -> Tensor:
        keep = self.keep(p, tile)
        return p if keep is None else p.mul_(keep)

    def output(self, p: Tensor, tile: slice) -> Tensor:
        out = torch.bmm(p, self.v)
        for target, map_, table in self.terms:
            if target == 'v':
                out += multiply(reduce(map_, p, tile), table, self.heads)
        return out

    def gradients(self, grad: Tensor, out: Tensor,
                  lse: Tensor) -> Tuple[Tensor, ...]:
        """Of q, k, v and the tables."""
        delta = (grad * out).sum(-1, keepdim=True)
        dq = torch.empty_like(self.q)
        dk, dv = torch.zeros_like(self.k), torch.zeros_like(self.v)
        dtables = [torch.zeros_like(table) for _, _, table in self.terms]
        dscores = [None if s is None else torch.zeros_like(s)
                   for s in self.scores]
        for tile in self.tiles:
            q, g = self.q[:, tile], grad[:, tile]
            p = self.logits(tile).sub_(lse[:, tile, None]).exp_()
            keep = self.keep(p, tile)
            kept = p if keep is None else p * keep
            dv.baddbmm_(kept.transpose(1, 2), g)
            dp = torch.bmm(g, self.v.transpose(1, 2))
            self._value_terms(kept, g, dp, dtables, tile)
            if keep is not None:
                dp.mul_(keep)
            ds = dp.sub_(delta[:, tile]).mul_(p)
            dk.baddbmm_(ds.transpose(1, 2), q)
            dq[:, tile] = torch.bmm(ds, self.k)
            self._logit_terms(ds, q, dq[:, tile], dtables, dscores, tile)
        for (_, _, table), ds, dtable in zip(self.terms, dscores, dtables):
            if ds is not None:
                dx, dt = multiply_grads(self.scale * self.k, table, ds,
                                        self.heads)
                dk.add_(dx, alpha=self.scale)
                dtable += dt
        return dq, dk, dv, *dtables

    def _value_terms(self, p: Tensor, grad: Tensor, dp: Tensor,
                     dtables: List[Tensor], tile: slice) -> None:
        for (target, map_, table), dtable in zip(self.terms, dtables):
            if target == 'v':
                dx, dt = multiply_grads(
                    reduce(map_, p, tile), table, grad, self.heads)
                dp += expand(map_, dx, tile)
                dtable += dt

    def _logit_terms(self, ds: Tensor, q: Tensor, dq: Tensor,
                     dtables: List[Tensor], dscores: List[Optional[Tensor]],
                     tile: slice) -> None:
        for (target, map_, table), dtable, dscore in zip(
                self.terms, dtables, dscores):
            if target == 'k':
                dx, dt = multiply_grads(q, table, reduce(map_, ds, tile),
                                        self.heads)
                dq += dx
                dtable += dt
            elif target == 'q':
                reduce_keys(map_, ds, tile, dscore)
            elif target == 'bias':
                sums = ds.unflatten(0, (-1, self.heads)).sum(0)
                if len(table) == 1:
                    sums = sums.sum(0, keepdim=True)
                dtable += reduce(map_, sums, tile).sum(1)


def _tiles(queries: int, keys: int, map_: Optional[BucketMap]) -> List[slice]:
    """Slices of queries: prefix and rows of the grid, or any of that size."""
    prefix, step = 0, max(1, 32768 // keys)
    if map_ is not None:
        prefix, step = map_.num_prefix, map_.shape[1]
    starts = [*([0] if prefix else []), *range(prefix, queries, step)]
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], queries])]
