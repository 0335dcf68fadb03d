"""Attention with what position encodings add to it."""
from dataclasses import replace
from typing import Optional, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from mmpe.position.bucket_map import BucketMap
from mmpe.position.terms import (BucketTerm, LogitScale, PairBias, Rotation,
                                 Term)
from .tiled_attention import tiled_attention

DENSE_TOKENS = 512
"""Up to here all pairs at once are faster; beyond, none are kept."""


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor],
           dropout: float, terms: Sequence[Term]) -> Tensor:
    """``softmax(c q k^T + terms) v + terms``, c = D^-0.5.

    Args:
        q (Tensor): ``(B, H, N, D)``.
        k (Tensor): ``(B, H, M, D)``.
        v (Tensor): ``(B, H, M, D)``.
        mask (Tensor, optional): broadcastable to ``(B, H, N, M)``; bool, True
            is attended, or float, added to the logits. No gradient reaches it
            above ``DENSE_TOKENS``.
        dropout (float): Probability of dropping an attention weight.
        terms (Sequence[Term]): See there. With bucket terms N equals M.

    Returns:
        Tensor: ``(B, H, N, D)`` in the type of ``v``.

    Raises:
        ValueError: If a term's grid has another number of tokens.
    """
    buckets = [t for t in terms if isinstance(t, (BucketTerm, PairBias))]
    scale = q.shape[-1]**-0.5
    turned_q, turned_k = q, k
    for term in terms:
        if isinstance(term, LogitScale):
            scale = term.scale
        elif isinstance(term, Rotation):
            turned_q, turned_k = term.turn(turned_q), term.turn(turned_k)
    # PyTorch can't fuse bucket terms and, on a CPU, dropout.
    if not buckets and not (dropout and q.device.type == 'cpu'):
        if mask is not None and mask.dtype != torch.bool:
            mask = mask.to(q.dtype)
        return F.scaled_dot_product_attention(
            turned_q, turned_k, v, mask, dropout, scale=scale)
    return _attend_exactly(q, k, turned_q, turned_k, v, scale, mask, dropout,
                           buckets)


@torch.compiler.disable  # its loop over tiles would be unrolled
def _attend_exactly(q: Tensor, k: Tensor, turned_q: Tensor, turned_k: Tensor,
                    v: Tensor, scale: float, mask: Optional[Tensor],
                    dropout: float, terms: Sequence[Term]) -> Tensor:
    """Softmax and tables need the precision under autocast."""
    for term in terms:
        tokens = (
            len(term.bias[0])
            if isinstance(term, PairBias) else term.map.num_tokens)
        if not tokens == q.shape[2] == k.shape[2]:
            raise ValueError(
                f'the position encoding is for {tokens} tokens, the attention '
                f'has {q.shape[2]} queries and {k.shape[2]} keys')
    dense = k.shape[2] <= DENSE_TOKENS or any(
        isinstance(term, PairBias) for term in terms)
    attention = dense_attention if dense else tiled_attention
    is_turned = turned_q is not q
    with torch.autocast(q.device.type, enabled=False):
        q, k, exact_v = _float32(q) * scale, _float32(k), _float32(v)
        if is_turned:
            turned_q = _float32(turned_q) * scale
            turned_k = _float32(turned_k)
        else:
            turned_q, turned_k = q, k
        terms = [
            replace(t, table=t.table.to(q.dtype))
            if isinstance(t, BucketTerm) else t for t in terms
        ]
        out = attention(turned_q, turned_k, exact_v, q, k, scale, mask,
                        dropout, terms)
    return out.to(v.dtype)


def _float32(x: Tensor) -> Tensor:
    """That or better."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def dense_attention(q: Tensor, k: Tensor, v: Tensor, content_q: Tensor,
                    content_k: Tensor, scale: float, mask: Optional[Tensor],
                    dropout: float, terms: Sequence[Term]) -> Tensor:
    """All pairs at once; arguments as :func:`tiled_attention`'s."""
    logits = q @ k.transpose(-2, -1)
    pairs = [term for term in terms if isinstance(term, PairBias)]
    terms = [term for term in terms if isinstance(term, BucketTerm)]
    for term in pairs:
        logits = logits + term.bias
    for term in terms:
        if term.target == 'bias':
            logits = logits + term.table[..., term.map.all_ids]
        elif term.target == 'k':
            logits = logits + _pick(content_q @ term.table, term.map)
        elif term.target == 'q':
            keys = _pick(scale * content_k @ term.table, term.map)
            logits = logits + keys.transpose(-2, -1)
    if mask is not None:
        logits = (
            logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
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
