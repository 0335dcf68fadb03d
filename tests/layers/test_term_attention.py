"""What attention by tiles keeps, drops and refuses."""
import pytest
import torch
from torch.testing import assert_close

from mmpe.layers.term_attention import attend, tiled_attention
from mmpe.layers.replayed_dropout import keep_mask as _keep_mask
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
