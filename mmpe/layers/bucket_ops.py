"""From numbers per bucket to numbers per pair of tokens, and back.

A tile is a slice of queries: the prefix, or one row of the grid. Heads are in
the batch dimension. Where a map has ``axes``, whole rows of keys are selected
and columns are expanded by a product with a one-hot matrix, which is several
times as fast on a CPU as gathering each pair.
"""
from typing import Tuple

import torch
from torch import Tensor

from mmpe.position.buckets import BucketMap


def _by_axes(map_: BucketMap) -> bool:
    return map_.axes is not None and map_.num_prefix == 0


def _columns(map_: BucketMap, like: Tensor) -> Tensor:
    return map_.cols_one_hot.to(like.dtype)


def expand(map_: BucketMap, scores: Tensor, tile: slice) -> Tensor:
    """``out[g, i, j] = scores[g, i, id(i, j)]``.

    Args:
        map_ (BucketMap): id.
        scores (Tensor): ``(G, n, nb)``, n the tile's queries.
        tile (slice): Which queries.

    Returns:
        Tensor: ``(G, n, N)``.
    """
    if not _by_axes(map_):
        ids = map_.ids(tile.start, tile.stop)
        return scores.gather(2, ids.expand(len(scores), -1, -1))
    h, w = map_.shape
    g, cols = len(scores), map_.axes[2]
    x = scores.unflatten(2, (-1, cols)).transpose(0, 1)
    x = torch.bmm(x.reshape(w, -1, cols), _columns(map_, x))
    x = x.view(w, g, -1, w).transpose(0, 1)
    return x.index_select(2, map_.row_ids[tile.start // w]).view(g, w, h * w)


def reduce(map_: BucketMap, pairs: Tensor, tile: slice) -> Tensor:
    """``out[g, i, b] = sum of pairs[g, i, j] with id(i, j) = b``; shapes as
    in :func:`expand`, whose transpose it is."""
    if not _by_axes(map_):
        ids = map_.ids(tile.start, tile.stop).expand_as(pairs)
        out = pairs.new_zeros(*pairs.shape[:2], map_.num_buckets)
        return out.scatter_add_(2, ids, pairs)
    h, w = map_.shape
    g, cols = len(pairs), map_.axes[2]
    rows = map_.rows_one_hot[tile.start // w].to(pairs.dtype)
    x = torch.matmul(rows, pairs.view(g, w, h, w))
    x = torch.bmm(
        x.transpose(0, 1).reshape(w, -1, w),
        _columns(map_, x).transpose(1, 2))
    return x.view(w, g, -1).transpose(0, 1)


def expand_keys(map_: BucketMap, scores: Tensor, tile: slice) -> Tensor:
    """``out[g, i, j] = scores[g, j, id(j, i)]``.

    Args:
        map_ (BucketMap): id.
        scores (Tensor): ``(G, N, nb)``.
        tile (slice): Which i.

    Returns:
        Tensor: ``(G, n, N)``.
    """
    if not _by_axes(map_):
        ids = map_.flipped_ids(tile.start, tile.stop)
        return scores.gather(2, ids.T.expand(len(scores), -1, -1)).transpose(
            1, 2).contiguous()
    h, w = map_.shape
    x = _key_rows(map_, scores, tile)  # (h, G, w, cols)
    x = x.permute(2, 0, 1, 3).reshape(w, -1, map_.axes[2])
    x = torch.bmm(x, _columns(map_, x)).view(w, h, -1, w)
    return x.permute(2, 3, 1, 0).reshape(-1, w, h * w)


def reduce_keys(map_: BucketMap, pairs: Tensor, tile: slice,
                out: Tensor) -> None:
    """Add ``pairs``, ``(G, n, N)``, to ``out``, ``(G, N, nb)``: the transpose
    of :func:`expand_keys`."""
    if not _by_axes(map_):
        ids = map_.flipped_ids(tile.start, tile.stop)
        out.scatter_add_(2, ids.T.expand(len(out), -1, -1),
                         pairs.transpose(1, 2))
        return
    h, w = map_.shape
    x = pairs.view(-1, w, h, w).permute(3, 2, 0, 1).reshape(w, -1, w)
    x = torch.bmm(x, _columns(map_, x).transpose(1, 2))
    x = x.view(w, h, -1, map_.axes[2]).permute(1, 2, 0, 3)
    view, at, ids = _key_view(map_, out, tile)
    view[:, at, :, ids] += x


def _key_view(map_: BucketMap, scores: Tensor, tile: slice):
    """Scores as ``(G, h, w, rows, cols)``, and for each row of keys the bucket
    that it has with the tile's row."""
    h, w = map_.shape
    view = scores.view(len(scores), h, w, -1, map_.axes[2])
    at = torch.arange(h, device=scores.device)
    return view, at, map_.row_ids[:, tile.start // w]


def _key_rows(map_: BucketMap, scores: Tensor, tile: slice) -> Tensor:
    view, at, ids = _key_view(map_, scores, tile)
    return view[:, at, :, ids]


def multiply(x: Tensor, table: Tensor, heads: int) -> Tensor:
    """``(BH, n, a)`` times ``(H or 1, a, b)``: ``(BH, n, b)``."""
    if len(table) == 1:
        return x @ table[0]
    return (x.unflatten(0, (-1, heads)) @ table).flatten(0, 1)


def multiply_grads(x: Tensor, table: Tensor, grad: Tensor,
                   heads: int) -> Tuple[Tensor, Tensor]:
    """Gradients of :func:`multiply` with respect to ``x`` and ``table``."""
    if len(table) == 1:
        dtable = x.reshape(-1, x.shape[2]).T @ grad.reshape(
            -1, grad.shape[2])
        return grad @ table[0].T, dtable[None]
    grad = grad.unflatten(0, (-1, heads))
    x = x.unflatten(0, (-1, heads))
    dx = grad @ table.transpose(1, 2)
    return dx.flatten(0, 1), (x.transpose(2, 3) @ grad).sum(0)
