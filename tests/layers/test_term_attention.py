"""What attention by tiles keeps, drops and refuses."""
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from mmpe.layers import term_attention
from mmpe.layers import tiled_attention as tiles
from mmpe.layers.replayed_dropout import keep_mask as _keep_mask
from mmpe.layers.term_attention import attend, tiled_attention
from mmpe.layers.scratch import Scratch
from mmpe.position import BucketTerm, ImageRPE, TokenGrid


def keep_mask(like, p, seed):
    return _keep_mask(like, p, seed, Scratch(like))


def make(h, w, target='qkv', heads=2, dim=4):
    rpe = ImageRPE(
        target=target,
        init='xavier',
        embed_dims=heads * dim,
        num_heads=heads,
        num_layers=1)
    grid = TokenGrid(((h, w), ), device=torch.device('cpu'))
    return rpe.terms(0, grid), torch.randn(3, 2, heads, h * w, dim)


def test_nothing_of_all_pairs_is_kept_for_the_backward():
    terms, (q, k, v) = make(20, 30)
    q.requires_grad_()
    sizes = []

    def pack(x):
        sizes.append(x.numel())
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        attend(q, k, v, None, 0.1, terms)
    assert max(sizes) <= q.numel()


def test_dropout_is_replayed_in_the_backward():
    # The output is linear in v, so its gradient holds the dropped weights.
    terms, (q, k, v) = make(4, 5)
    v.requires_grad_()
    torch.manual_seed(5)
    out = tiled_attention(q, k, v, q, k, 0.5, None, 0.5, terms)
    out[0, 0, 3, 0].backward()
    torch.manual_seed(5)
    with torch.no_grad():
        step = torch.zeros_like(v)
        step[0, 0, :, 0] = torch.arange(20.)
        moved = tiled_attention(q, k, v + step, q, k, 0.5, None, 0.5, terms)
    assert_close((v.grad * step).sum(), (moved - out)[0, 0, 3, 0],
                 rtol=1e-4, atol=1e-4)
    assert (v.grad[0, 0, :, 0] == 0).sum() > 3


def test_dropout_keeps_the_mean():
    mask = keep_mask(torch.empty(1000, 1000), 0.1, seed=1)
    assert abs((mask == 0).float().mean() - 0.1) < 2e-3
    assert abs(mask.mean() - 1) < 2e-3
    assert torch.equal(mask, keep_mask(torch.empty(1000, 1000), 0.1, seed=1))
    assert not torch.equal(mask, keep_mask(mask, 0.1, seed=2))
    # No bit of the 64 drawn at a time is always the same.
    eighth = (mask.flatten()[3::4] == 0).float().mean()
    assert abs(eighth - 0.1) < 3e-3


@pytest.mark.parametrize('target', ['q', 'k', 'v'])
@pytest.mark.parametrize('method', ['product', 'cross', 'quant'])
@pytest.mark.parametrize('prefix', [0, 1])
def test_gradients_in_float64(target, method, prefix):
    rpe = ImageRPE(
        target=target,
        method=method,
        ratio=0.6,
        init='xavier',
        shared_heads=method == 'cross',
        embed_dims=4,
        num_heads=2,
        num_layers=1,
        num_prefix=prefix).double()
    grid = TokenGrid(((2, 3), ), None, prefix, torch.device('cpu'))
    terms = rpe.terms(0, grid)
    q, k, v = torch.randn(3, 1, 2, 6 + prefix, 2).double()
    inputs = [x.requires_grad_() for x in (q, k, v)]
    mask = torch.ones(1, 1, 1, 6 + prefix, dtype=torch.bool)
    mask[..., -1] = False

    def run(q, k, v, *tables):
        moved = [
            BucketTerm(t.target, table, t.buckets, t.grid)
            for t, table in zip(terms, tables)
        ]
        return tiled_attention(q, k, v, q, k, 0.7, mask, 0., moved)

    torch.autograd.gradcheck(run, (*inputs, *[t.table for t in terms]))


@pytest.mark.parametrize('n', [4, 600])
def test_another_grid_is_refused(n):
    terms, _ = make(2, 3)
    x = torch.randn(1, 2, n, 4)
    with pytest.raises(ValueError, match=f'6 tokens.*{n} queries'):
        attend(x, x, x, None, 0., terms)


def test_long_rows_are_cut():
    terms, _ = make(1, 600)
    slices = tiles._tiles(600, 600, [(t.target, t.map) for t in terms])
    assert len(slices) == 1  # 600 x 600 is no more than a tile may have
    slices = tiles._tiles(4000, 4000, [('k', make(1, 4000)[0][0].map)])
    assert max(s.stop - s.start for s in slices) * 4000 <= tiles.TILE_NUMBERS


@pytest.mark.parametrize('n', [4, 600])
class TestOddCases:
    """What all pairs at once and tiles must do alike."""

    def attend(self, n, *args, dtype=torch.float32, batch=2, **kwargs):
        terms, (q, k, v) = make(2, n // 2, target='qkv')
        q, k, v = (x[:batch].to(dtype).requires_grad_() for x in (q, k, v))
        return q, attend(q, k, v, *args, terms, **kwargs)

    def test_empty_batch(self, n):
        q, out = self.attend(n, None, 0., batch=0)
        out.sum().backward()
        assert out.shape == q.shape

    def test_all_is_dropped(self, n):
        q, out = self.attend(n, None, 1.)
        out.sum().backward()
        assert out.abs().max() == 0 and q.grad.abs().max() == 0

    def test_a_query_that_may_attend_to_nothing(self, n):
        mask = torch.ones(n, n, dtype=torch.bool)
        mask[1] = False
        q, out = self.attend(n, mask, 0.)
        out.square().sum().backward()
        assert out.isfinite().all() and q.grad.isfinite().all()

    def test_backward_under_autocast(self, n):
        grads = []
        for enabled in False, True:
            torch.manual_seed(0)
            q, out = self.attend(n, None, 0.)
            with torch.autocast('cpu', torch.bfloat16, enabled=enabled):
                out.square().sum().backward()
            grads.append(q.grad)
        if n > 512:  # our own backward is exact
            assert_close(*grads)
        else:
            assert_close(*grads, rtol=0.1, atol=0.1)

    @pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
    def test_half_precision(self, n, dtype):
        outs = []
        for t in torch.float32, dtype:
            torch.manual_seed(0)
            q, out = self.attend(n, None, 0., dtype=t)
            assert out.dtype == t
            out.float().sum().backward()
            outs.append(out.float())
        assert_close(*outs, rtol=0.05, atol=0.05)


def test_maps_made_in_inference_mode_serve_training():
    from mmpe.position import buckets
    buckets._map_on.cache_clear()
    for n in 10, 600:
        with torch.inference_mode():
            terms, (q, k, v) = make(2, n // 2)
            attend(q, k, v, None, 0., terms)
        terms, (q, k, v) = make(2, n // 2)
        q.requires_grad_()
        attend(q, k, v, None, 0., terms).sum().backward()


def bucket(x, ratio):
    """iRPE's piecewise index of one offset (eq. 18)."""
    alpha, beta, gamma = ratio, 2 * ratio, 8 * ratio
    if abs(x) <= alpha:
        return round(x)
    far = alpha + (beta - alpha) * math.log(abs(x) / alpha) / math.log(
        gamma / alpha)
    return int(math.copysign(min(int(beta), round(far)), x))


def pair_vector(rpe, tables, key, head, i, j, width):
    """The table's entry for query i and key j, by the equations 19 to 27."""
    ratio, method = rpe.params[0], rpe.method
    letter, _, part = key.partition('_')
    table = tables[key]
    table = table[head if len(table) > 1 else 0]
    if rpe.mode == 'contextual' and letter != 'v':
        table = table.T
    i, j = i - rpe.num_prefix, j - rpe.num_prefix
    if min(i, j) < 0:
        return table[-1]
    side = 2 * int(2 * ratio) + 1
    dy, dx = i // width - j // width, i % width - j % width
    y, x = (bucket(d, ratio) + side // 2 for d in (dy, dx))
    if part:
        return table[y if part == 'rows' else x]
    if method == 'product':
        return table[y * side + x]
    square = dy**2 + dx**2
    distance = round(square**0.5) if method == 'euclidean' else square
    return table[bucket(distance, ratio) + side // 2]


def by_pairs(rpe, q, k, v, mask, shape):
    """Attention with an encoding, as its equations say, pair by pair."""
    out = torch.zeros_like(q)
    scale = q.shape[-1]**-0.5
    tables = rpe.tables['0']
    for b, head in [(b, h) for b in range(len(q)) for h in range(q.shape[1])]:
        def at(key, i, j):
            return pair_vector(rpe, tables, key, head, i, j, shape[1])
        for i in range(q.shape[2]):
            logits, values = [], []
            for j in range(q.shape[2]):
                query, key = q[b, head, i], k[b, head, j]
                logit, value = scale * query @ key, v[b, head, j]
                for name in tables:
                    if name[0] == 'v':
                        value = value + at(name, i, j)
                    elif rpe.mode == 'bias':
                        pair = (j, i) if name[0] == 'q' else (i, j)
                        logit = logit + at(name, *pair)
                    elif name[0] == 'k':
                        logit = logit + scale * query @ at(name, i, j)
                    else:
                        logit = logit + scale * key @ at(name, j, i)
                logits.append(logit.masked_fill(mask[b, j], -torch.inf))
                values.append(value)
            p = torch.stack(logits).softmax(0)
            out[b, head, i] = p @ torch.stack(values)
    return out


@given(
    h=st.integers(1, 3),
    w=st.integers(1, 4),
    prefix=st.integers(0, 2),
    heads=st.integers(1, 3),
    ratio=st.sampled_from([0.7, 1.3, 2.]),
    method=st.sampled_from(['euclidean', 'quant', 'cross', 'product']),
    mode=st.sampled_from(['bias', 'contextual']),
    target=st.sampled_from(['q', 'k', 'v', 'qk', 'qkv']),
    shared=st.booleans(),
    tile=st.sampled_from([1, 40, 2**19]),
    seed=st.integers(0, 99))
def test_equals_pair_by_pair(h, w, prefix, heads, ratio, method, mode, target,
                             shared, tile, seed):
    torch.manual_seed(seed)
    target = target.replace('v', '') or 'k' if mode == 'bias' else target
    rpe = ImageRPE(
        ratio=ratio,
        method=method,
        mode=mode,
        target=target,
        shared_heads=shared,
        embed_dims=2 * heads,
        num_heads=heads,
        num_layers=1,
        num_prefix=prefix).double()
    for table in rpe.parameters():
        torch.nn.init.normal_(table)
    n = prefix + h * w
    q, k, v, grad = torch.randn(4, 2, heads, n, 2, dtype=torch.float64)
    inputs = [q, k, v, *rpe.parameters()]
    for x in q, k, v:
        x.requires_grad_()
    padding = torch.arange(n) >= torch.tensor([[n], [max(1, n - 2)]])
    grid = TokenGrid(((h, w), ), padding, prefix)
    expected = by_pairs(rpe, q, k, v, padding, (h, w))
    gradients = torch.autograd.grad(expected, inputs, grad)
    for threshold in 0, 512:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(term_attention, 'DENSE_TOKENS', threshold)
            patch.setattr(tiles, 'TILE_NUMBERS', tile)
            out = attend(q, k, v, ~padding[:, None, None], 0.,
                         rpe.terms(0, grid))
        assert_close(out, expected)
        assert_close(torch.autograd.grad(out, inputs, grad), gradients)
