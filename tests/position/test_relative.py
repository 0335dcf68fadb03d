"""Earlier relative encodings against their equations, pair by pair."""
import pytest
import torch
from torch.testing import assert_close

from mmpe.layers import term_attention
from mmpe.position import (HuangRPE, SASARPE, ShawRPE, TokenGrid,
                           TransformerXLRPE)

H, D, SHAPE, K = 2, 4, (3, 5), 2
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


@pytest.mark.parametrize('cls', [ShawRPE, HuangRPE, SASARPE, TransformerXLRPE])
def test_piecewise_has_as_many_buckets(cls):
    encoding = cls(max_distance=4, index='piecewise', **HOST)
    grid = TokenGrid(((40, 40), ), device=torch.device('cpu'))
    for term in encoding.terms(0, grid):
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
