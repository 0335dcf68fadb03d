"""Earlier relative encodings against their equations, pair by pair."""
import re

import pytest
import torch
from torch.testing import assert_close

from mmpe.layers import term_attention
from mmpe.position import (AxialDeepLabRPE, HuangRPE, ImageRPE, LogitScale,
                           RelativePositionBias, Rotation, SASARPE, ShawRPE,
                           TokenGrid, TransformerXLRPE)
from mmpe.position.relative_bias import resize_offsets

H, D, SHAPE, K = 2, 4, (3, 7), 2
N = SHAPE[0] * SHAPE[1]
HOST = dict(embed_dims=H * D, num_heads=H, num_layers=2)


def offsets(i, j):
    """dy and dx of query minus key, clipped to K."""
    w = SHAPE[1]
    dy, dx = i // w - j // w, i % w - j % w
    return max(-K, min(K, dy)), max(-K, min(K, dx))


def product(table, i, j):
    """A product table's vector for a pair."""
    dy, dx = offsets(i, j)
    return table[..., (dy + K) * (2 * K + 1) + dx + K]


def axial_deeplab(e, q, k, v, head, i, j):
    w = SHAPE[1]
    if abs(i // w - j // w) > K or abs(i % w - j % w) > K:
        return torch.tensor(-torch.inf), v
    query = product(e.queries[1][0], i, j)
    key = product(e.keys[1][0], i, j)
    value = product(e.values[1][0].T, i, j)
    return q @ k + q @ query + k @ key, v + value


def shaw(e, q, k, v, head, i, j):
    key = product(e.keys[1][0], i, j)
    value = product(e.values[1][0].T, i, j)
    return q @ (k + key) / D**0.5, v + value


def huang(e, q, k, v, head, i, j):
    p = product(e.pairs[1][0], i, j)
    return ((q + p) @ (k + p) - p @ p) / D**0.5, v


def sasa(e, q, k, v, head, i, j):
    dy, dx = offsets(i, j)
    p = torch.cat([e.cols[1][0, :, dx + K], e.rows[1][0, :, dy + K]])
    return q @ (k + p) / D**0.5, v


def transformer_xl(e, q, k, v, head, i, j):
    dy, dx = offsets(i, j)
    waves = []
    for offset in dx, dy:
        for c in range(0, H * D // 2, 2):
            angle = torch.tensor(offset / 10000**(c / (H * D // 2)))
            waves += [angle.sin(), angle.cos()]
    r = (e.project[1] @ torch.stack(waves))[head * D:(head + 1) * D]
    u, t = e.content_query[1][head], e.offset_query[1][head]
    return (q @ k + q @ r + u @ k + t @ r) / D**0.5, v


@pytest.mark.parametrize('cls,equation', [
    (AxialDeepLabRPE, axial_deeplab),
    (ShawRPE, shaw),
    (HuangRPE, huang),
    (SASARPE, sasa),
    (TransformerXLRPE, transformer_xl),
])
@pytest.mark.parametrize('threshold', [0, 512])
def test_equals_its_equation(cls, equation, threshold, monkeypatch):
    encoding = cls(max_distance=K, **HOST)
    for p in encoding.parameters():
        torch.nn.init.normal_(p)
    q, k, v = torch.randn(3, H, N, D)
    expected = torch.zeros(H, N, D)
    for head in range(H):
        for i in range(N):
            pairs = [
                equation(encoding, q[head, i], k[head, j], v[head, j], head,
                         i, j) for j in range(N)
            ]
            logits, values = (torch.stack(x) for x in zip(*pairs))
            expected[head, i] = logits.softmax(0) @ values
    monkeypatch.setattr(term_attention, 'DENSE_TOKENS', threshold)
    grid = TokenGrid((SHAPE, ), device=torch.device('cpu'))
    out = term_attention.attend(
        q[None], k[None], v[None], None, 0., encoding.terms(1, grid))
    assert_close(out[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('prefix', [0, 2])
@pytest.mark.parametrize('index', ['clip', 'piecewise'])
@pytest.mark.parametrize(
    'cls', [AxialDeepLabRPE, ShawRPE, HuangRPE, SASARPE, TransformerXLRPE])
def test_tables_have_an_entry_per_bucket(cls, index, prefix):
    encoding = cls(max_distance=4, index=index, num_prefix=prefix, **HOST)
    grid = TokenGrid(((40, 40), ), None, prefix, torch.device('cpu'))
    for term in encoding.terms(0, grid):
        if isinstance(term, LogitScale):
            continue
        assert term.map.table.max() < term.map.num_buckets
        axis = 2 if term.target in 'kq' else 1
        assert term.table.shape[axis] == term.map.num_buckets


@pytest.mark.parametrize('arguments,says', [
    (dict(max_distance=0), 'max_distance'),
    (dict(max_distance=1.5), 'max_distance'),
    (dict(index='log'), 'index'),
])
def test_bad_arguments(arguments, says):
    with pytest.raises(ValueError, match=says):
        ShawRPE(**arguments, **HOST)


def attention(terms, n, heads=H, dim=D):
    """Output and gradients of random tokens, tiled and dense."""
    inputs = torch.randn(3, 2, heads, n, dim)
    results = []
    for threshold in 0, 512:
        q, k, v = (x.clone().requires_grad_() for x in inputs)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(term_attention, 'DENSE_TOKENS', threshold)
            out = term_attention.attend(q, k, v, None, 0., terms)
            out.square().sum().backward()
        results.append([out, q.grad, k.grad, v.grad])
    assert_close(*results, rtol=1e-4, atol=1e-5)
    return inputs, results[0][0]


class TestRotation:
    angles = torch.arange(N)[:, None] * torch.tensor([0.3, 0.05])

    def test_is_relative(self):
        # Two pairs of tokens with one offset have one logit.
        turn = Rotation(self.angles[None, None]).turn
        q, k = (x.expand(1, 1, N, D) for x in torch.randn(2, D))
        logits = (turn(q) @ turn(k).transpose(-2, -1))[0, 0]
        assert_close(logits[1:, 1:], logits[:-1, :-1])
        assert_close(logits.diagonal(), (q * k).sum(-1)[0, 0])

    def test_equals_its_equation(self):
        terms = [Rotation(self.angles[None, None])]
        (q, k, v), out = attention(terms, N)
        turned = []
        for x in q, k:
            cos, sin = self.angles.cos(), self.angles.sin()
            a, b = x[..., ::2], x[..., 1::2]
            pairs = a * cos - b * sin, a * sin + b * cos
            turned.append(torch.stack(pairs, -1).flatten(-2))
        logits = turned[0] @ turned[1].transpose(-2, -1) / D**0.5
        assert_close(out, logits.softmax(-1) @ v, rtol=1e-4, atol=1e-5)

    def test_bucket_terms_see_what_is_not_turned(self):
        rpe = ImageRPE(target='qk', init='xavier', **HOST)
        grid = TokenGrid((SHAPE, ), device=torch.device('cpu'))
        terms = rpe.terms(0, grid)
        (q, k, v), out = attention(
            [Rotation(self.angles[None, None]), *terms], N)
        turn = Rotation(self.angles[None, None]).turn
        scale = D**-0.5
        logits = scale * turn(q) @ turn(k).transpose(-2, -1)
        ids = terms[0].map.all_ids.expand(2, H, N, N)
        for term in terms:
            x = dict(q=k, k=q)[term.target]
            picked = (scale * x @ term.table).gather(3, ids)
            logits = logits + (
                picked if term.target == 'k' else picked.transpose(2, 3))
        assert_close(out, logits.softmax(-1) @ v, rtol=1e-4, atol=1e-5)


class TestRelativePositionBias:

    def make(self, grid=(3, 4), prefix=0):
        bias = RelativePositionBias(grid=grid, num_prefix=prefix, **HOST)
        for p in bias.parameters():
            torch.nn.init.normal_(p)
        return bias

    @pytest.mark.parametrize('prefix', [0, 1])
    def test_each_image_has_its_own(self, prefix):
        bias = self.make(prefix=prefix)
        sizes = [(3, 4), (2, 5), (0, 0)]
        mask = torch.ones(3, 4, 6, dtype=torch.bool)
        for m, (h, w) in zip(mask, sizes):
            m[:h, :w] = False
        prefixes = torch.zeros(3, prefix, dtype=torch.bool)
        grid = TokenGrid(((4, 6), ),
                         torch.cat([prefixes, mask.flatten(1)], 1), prefix)
        term, = bias.terms(1, grid)
        together = term.table[..., term.map.all_ids]
        for image, (h, w) in enumerate(sizes[:2]):
            alone, = bias.terms(
                1, TokenGrid(((h, w), ), None, prefix, torch.device('cpu')))
            expected = alone.table[..., alone.map.all_ids]
            valid = ~grid.mask[image]
            assert_close(together[image][:, valid][:, :, valid], expected)

    def test_table_is_looked_up_by_offset(self):
        bias = self.make()
        term, = bias.terms(0, TokenGrid(((3, 4), ),
                                        device=torch.device('cpu')))
        pairs = term.table[..., term.map.all_ids]
        for i in range(12):
            for j in range(12):
                dy, dx = i // 4 - j // 4, i % 4 - j % 4
                assert_close(pairs[:, i, j], bias.tables[0][:, dy + 2, dx + 3])

    def test_resizing_keeps_the_middle(self):
        table = torch.arange(7.)[None, None].expand(1, 5, 7)
        out = resize_offsets(table, (2, 7))
        assert out.shape == (1, 3, 13)
        assert_close(out[0, :, 6], torch.full((3, ), 3.))

    def test_loads_that_of_another_grid(self):
        other, bias = self.make((5, 7)), self.make((3, 4))
        bias.load_state_dict(other.state_dict())
        assert_close(bias.tables[1], resize_offsets(other.tables[1], (3, 4)))
        other.tables[0].data = other.tables[0].data[:1]
        with pytest.raises(ValueError, match=r'\(1, 9, 13\).*\(2, 5, 7\)'):
            bias.load_state_dict(other.state_dict())

    def test_long_rows_take_little_memory(self):
        bias = self.make((1, 5))
        term, = bias.terms(0, TokenGrid(((1, 900), ),
                                        device=torch.device('cpu')))
        attention([term], 900)
        assert 'cols_one_hot' not in vars(term.map)

    @pytest.mark.parametrize('grid', [7, (0, 3), (3., 4), (1, 2, 3)])
    def test_bad_grid(self, grid):
        with pytest.raises(ValueError, match='grid must be'):
            RelativePositionBias(grid=grid, **HOST)


class TestOtherBuckets:
    """Tables of a checkpoint with another alpha, beta and gamma."""

    @pytest.mark.parametrize('prefixes', [(0, 0), (0, 1), (1, 0), (1, 1)])
    @pytest.mark.parametrize('method', ['product', 'cross', 'quant'])
    @pytest.mark.parametrize('ratios', [(1.9, 3.5), (3.5, 1.9), (2., 2.)])
    def test_offsets_keep_their_numbers(self, method, ratios, prefixes):
        old, new = (
            ImageRPE(
                ratio=ratio,
                method=method,
                target='kv',
                num_prefix=prefix,
                **HOST) for ratio, prefix in zip(ratios, prefixes))
        move(old)
        new.load_state_dict(old.state_dict())
        before, after = (
            e.terms(0, TokenGrid(((9, 9), ), None, p, torch.device('cpu')))
            for e, p in zip((old, new), prefixes))
        for a, b in zip(before, after):
            # The vector of an offset of one cell, along both axes.
            def vector(term, at):
                bucket = term.map.ids()[at + term.grid.num_prefix,
                                        40 + term.grid.num_prefix]
                return term.table.select(1 if term.target == 'v' else 2,
                                         bucket)
            for at in 40, 41, 49:
                assert_close(vector(a, at), vector(b, at))
            if prefixes[1]:
                axis = 1 if b.target == 'v' else 2
                last = b.table.select(axis, -1)
                expected = a.table.select(axis, -1) * prefixes[0]
                assert_close(last, expected)

    def test_predecessors(self):
        old, new = (ShawRPE(max_distance=k, **HOST) for k in (3, 2))
        move(old)
        new.load_state_dict(old.state_dict())
        assert_close(new.keys[0].view(D, 5, 5),
                     old.keys[0].view(D, 7, 7)[:, [0, 2, 3, 4, 6]][
                         :, :, [0, 2, 3, 4, 6]])

    @pytest.mark.parametrize('shape', [(1, D, 80), (2, D, 49), (D, 49)])
    def test_what_does_not_fit(self, shape):
        rpe = ImageRPE(**HOST)
        weights = rpe.state_dict()
        weights['tables.1.k'] = torch.zeros(shape)
        found, wanted = map(re.escape, (str(shape), str((1, D, 81))))
        with pytest.raises(ValueError, match=f'tables.1.k.*{found}.*{wanted}'):
            rpe.load_state_dict(weights)


def move(encoding):
    for p in encoding.parameters():
        torch.nn.init.normal_(p)
