"""From numbers per bucket to numbers per pair of tokens, and back.

A tile is a slice of queries: the prefix, or one row of the grid. Heads are in
the batch dimension G. Each way from buckets to pairs is linear and comes with
its transpose, which sums pairs by bucket.
"""
from typing import Optional, Tuple

import torch
from torch import Tensor

from mmpe.position.bucket_map import BucketMap
from .scratch import Scratch


def bucket_tiles(map_: BucketMap, scratch: Scratch) -> 'BucketTiles':
    """The fastest that the map allows."""
    return (AxisTiles if map_.axes else BucketTiles)(map_, scratch)


class BucketTiles:
    """Gathers pair by pair: for any map.

    Scores of queries, ``(G, n, nb)``, are expanded to a tile ``out[g, i, j] =
    scores[g, i, id(i, j)]``. Those of keys, ``(G, N, nb)``, which give
    ``out[g, i, j] = scores[g, j, id(j, i)]``, and tables of biases, ``(G,
    nb)``, which give ``out[g, i, j] = table[g, id(i, j)]``, serve all tiles
    and are first brought into a form that makes that fast.
    """

    def __init__(self, map_: BucketMap, scratch: Scratch) -> None:
        self.map = map_
        self.scratch = scratch

    def expand(self, scores: Tensor, tile: slice, out: Tensor) -> Tensor:
        """Fill a tile ``(G, n, N)``."""
        ids = self.map.ids(tile.start, tile.stop)
        return torch.gather(scores, 2, ids.expand_as(out), out=out)

    def reduce(self, pairs: Tensor, tile: slice) -> Tensor:
        """Transpose of :meth:`expand`."""
        ids = self.map.ids(tile.start, tile.stop).expand_as(pairs)
        out = pairs.new_zeros(*pairs.shape[:2], self.map.num_buckets)
        return out.scatter_add_(2, ids, pairs)

    def prepare_keys(self, scores: Tensor) -> Tensor:
        return scores

    def expand_keys(self, form: Tensor, tile: slice, out: Tensor) -> Tensor:
        """Fill a tile from what :meth:`prepare_keys` gave."""
        ids = self.map.flipped_ids(tile.start, tile.stop).T
        picked = form.gather(2, ids.expand(len(form), -1, -1))
        return out.copy_(picked.transpose(1, 2))

    def reduce_keys(self, pairs: Tensor, tile: slice, form: Tensor) -> None:
        """Transpose of :meth:`expand_keys`, added to ``form``."""
        ids = self.map.flipped_ids(tile.start, tile.stop).T
        form.scatter_add_(2, ids.expand(len(form), -1, -1),
                          pairs.transpose(1, 2))

    def finish_keys(self, form: Tensor) -> Tensor:
        """Transpose of :meth:`prepare_keys`."""
        return form

    def prepare_bias(self, table: Tensor) -> Tensor:
        return table

    def expand_bias(self, form: Tensor, tile: slice, out: Tensor) -> Tensor:
        """Fill a tile from what :meth:`prepare_bias` gave."""
        ids = self.map.ids(tile.start, tile.stop)
        torch.index_select(form, 1, ids.flatten(), out=out.flatten(1))
        return out

    def reduce_bias(self, pairs: Tensor, tile: slice, form: Tensor) -> None:
        """Transpose of :meth:`expand_bias`, added to ``form``."""
        ids = self.map.ids(tile.start, tile.stop)
        form.index_add_(1, ids.flatten(), pairs.flatten(1))

    def finish_bias(self, form: Tensor) -> Tensor:
        """Transpose of :meth:`prepare_bias`."""
        return form


class AxisTiles(BucketTiles):
    """Columns by a product with a one-hot matrix, then whole rows of keys at
    a time: several times as fast on a CPU as gathering each pair.

    Forms are ``(G, w, r, w)``: a number for each column of the query, bucket
    of rows and column of the key; those of keys also have a row of the key,
    ``(G, w, r * h, w)``. Prefix tokens are apart.
    """

    def __init__(self, map_: BucketMap, scratch: Scratch) -> None:
        super().__init__(map_, scratch)
        self.shape = map_.shape
        self.prefix = map_.num_prefix
        self.columns = map_.axes[2]

    def _one_hot(self, tile: Optional[slice] = None) -> Tensor:
        """``(n, columns, w)`` for the columns of a tile, or all."""
        hot = self.map.cols_one_hot
        if tile is not None:
            hot = hot[self._queries(tile)]
        return hot.to(self.scratch.dtype)

    def _queries(self, tile: slice) -> slice:
        """Columns of a tile's queries, which are of one row."""
        first = (tile.start - self.prefix) % self.shape[1]
        return slice(first, first + tile.stop - tile.start)

    def _cells(self, tile: Tensor) -> Tensor:
        """A tile's keys without the prefix, ``(G, w, h, w)``."""
        return tile[..., self.prefix:].unflatten(2, self.shape)

    def _row(self, tile: slice) -> int:
        return (tile.start - self.prefix) // self.shape[1]

    def _is_prefix(self, tile: slice) -> bool:
        return tile.start < self.prefix

    def _by_row(self, scores: Tensor) -> Tensor:
        """Buckets ``(..., nb)`` to ``(..., r, columns)``."""
        cells = scores[..., :-1] if self.prefix else scores
        return cells.unflatten(-1, (-1, self.columns))

    def expand(self, scores: Tensor, tile: slice, out: Tensor) -> Tensor:
        if self._is_prefix(tile):
            return out.copy_(scores[..., -1:].expand_as(out))
        out[..., :self.prefix] = scores[..., -1:]
        x = self._by_row(scores)  # (G, w, r, columns)
        g, w, r, _ = x.shape
        x = x.transpose(0, 1).reshape(w, g * r, -1)
        form = self.scratch('form', w, g * r, self.shape[1])
        torch.bmm(x, self._one_hot(tile), out=form)
        return self._select(
            form.view(w, g, r, -1).transpose(0, 1), tile, out)

    def _select(self, form: Tensor, tile: slice, out: Tensor) -> Tensor:
        rows = self.map.row_ids[self._row(tile)]
        torch.index_select(form, 2, rows, out=self._cells(out))
        return out

    def reduce(self, pairs: Tensor, tile: slice) -> Tensor:
        g, n, _ = pairs.shape
        out = pairs.new_zeros(g, n, self.map.num_buckets)
        if self._is_prefix(tile):
            out[..., -1] = pairs.sum(2)
            return out
        if self.prefix:
            out[..., -1] = pairs[..., :self.prefix].sum(2)
        rows = self.map.rows_one_hot[self._row(tile)].to(pairs.dtype)
        w = self.shape[1]
        x = self.scratch('form', g, n, len(rows), w)
        torch.matmul(rows, self._cells(pairs), out=x)
        x = x.transpose(0, 1).reshape(n, -1, w)
        x = torch.bmm(x, self._one_hot(tile).transpose(1, 2))
        self._by_row(out).copy_(
            x.view(n, g, len(rows), -1).transpose(0, 1))
        return out

    def prepare_keys(self, scores: Tensor) -> Tuple[Tensor, Tensor]:
        x = self._by_row(scores[:, self.prefix:]).unflatten(1, self.shape)
        x = torch.einsum('gyxrc,xci->giryx', x, self._one_hot())
        # Rows of the key stand beside their buckets, for one index of both.
        return x.flatten(2, 3).contiguous(), scores[..., -1]

    def _key_rows(self, tile: slice) -> Tensor:
        h = self.shape[0]
        rows = self.map.row_ids[:, self._row(tile)]
        return rows * h + torch.arange(h, device=rows.device)

    def expand_keys(self, form: Tuple[Tensor, Tensor], tile: slice,
                    out: Tensor) -> Tensor:
        cells, prefix = form
        if self._is_prefix(tile):
            return out.copy_(prefix[:, None].expand_as(out))
        out[..., :self.prefix] = prefix[:, None, :self.prefix]
        torch.index_select(
            cells[:, self._queries(tile)], 2, self._key_rows(tile),
            out=self._cells(out))
        return out

    def reduce_keys(self, pairs: Tensor, tile: slice,
                    form: Tuple[Tensor, Tensor]) -> None:
        cells, prefix = form
        if self._is_prefix(tile):
            prefix += pairs.sum(1)
            return
        prefix[:, :self.prefix] += pairs[..., :self.prefix].sum(1)
        cells[:, self._queries(tile)].index_add_(
            2, self._key_rows(tile), self._cells(pairs))

    def finish_keys(self, form: Tuple[Tensor, Tensor]) -> Tensor:
        cells, prefix = form
        g, w, _, _ = cells.shape
        x = cells.view(g, w, -1, *self.shape)
        x = torch.einsum('giryx,xci->gyxrc', x, self._one_hot())
        out = x.new_zeros(g, self.map.num_tokens, self.map.num_buckets)
        self._by_row(out[:, self.prefix:]).copy_(x.flatten(1, 2))
        if self.prefix:
            out[..., -1] = prefix
        return out

    def prepare_bias(self, table: Tensor) -> Tuple[Tensor, Tensor]:
        x = self._by_row(table).index_select(2, self.map.col_ids.flatten())
        w = self.shape[1]
        return x.unflatten(2, (w, w)).transpose(1, 2), table[:, -1:]

    def expand_bias(self, form: Tuple[Tensor, Tensor], tile: slice,
                    out: Tensor) -> Tensor:
        cells, prefix = form
        if self._is_prefix(tile):
            return out.copy_(prefix[..., None].expand_as(out))
        out[..., :self.prefix] = prefix[..., None]
        return self._select(cells[:, self._queries(tile)], tile, out)

    def reduce_bias(self, pairs: Tensor, tile: slice,
                    form: Tuple[Tensor, Tensor]) -> None:
        cells, prefix = form
        if self._is_prefix(tile):
            prefix += pairs.sum((1, 2))[:, None]
            return
        prefix += pairs[..., :self.prefix].sum((1, 2))[:, None]
        rows = self.map.row_ids[self._row(tile)]
        cells[:, self._queries(tile)].index_add_(2, rows, self._cells(pairs))

    def finish_bias(self, form: Tuple[Tensor, Tensor]) -> Tensor:
        cells, prefix = form
        x = cells.transpose(1, 2).flatten(2)
        sums = x.new_zeros(*x.shape[:2], self.columns)
        x = sums.index_add_(2, self.map.col_ids.flatten(), x).flatten(1)
        return torch.cat([x, prefix], 1) if self.prefix else x


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
