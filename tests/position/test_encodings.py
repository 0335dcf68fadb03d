"""Encodings by themselves: grids, masks, norms."""
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmdet.models.layers import SinePositionalEncoding as TheirSine
from torch import nn
from torch.testing import assert_close

from mmpe.position import (PEG, LearnedPositionalEncoding,
                           SinePositionalEncoding, TokenGrid)
from mmpe.position.valid_norm import ValidBatchNorm

HOST = dict(embed_dims=8, num_heads=2, num_layers=4)
size = st.integers(1, 7)


def rectangles(sizes, h, w):
    mask = torch.ones(len(sizes), h, w, dtype=torch.bool)
    for m, (a, b) in zip(mask, sizes):
        m[:a, :b] = False
    return mask


@given(
    h=size,
    w=size,
    valid=st.lists(st.tuples(size, size), min_size=1, max_size=3),
    normalize=st.booleans(),
    offset=st.sampled_from([0., -0.5]),
    masked=st.booleans())
def test_sine_is_bit_equal_to_mmdetections(h, w, valid, normalize, offset,
                                           masked):
    kwargs = dict(num_feats=4, normalize=normalize, offset=offset)
    ours = SinePositionalEncoding(**kwargs, **HOST)
    theirs = TheirSine(**kwargs)
    mask = rectangles(valid, h, w) if masked else None
    expected = theirs(mask, torch.zeros(len(valid), 8, h, w))
    grid = TokenGrid(((h, w), ), mask.flatten(1) if masked else None)
    pos = ours.embed(grid).expand(len(valid), -1, -1)
    assert torch.equal(pos, expected.flatten(2).transpose(1, 2))


def test_each_level_is_embedded_by_itself():
    masks = [rectangles([(2, 3)], 3, 4), rectangles([(1, 2)], 2, 2)]
    encoding = SinePositionalEncoding(normalize=True, **HOST)
    both = encoding.embed(
        TokenGrid(((3, 4), (2, 2)),
                  torch.cat([m.flatten(1) for m in masks], 1)))
    alone = [
        encoding.embed(TokenGrid((tuple(m.shape[1:]), ), m.flatten(1)))
        for m in masks
    ]
    assert torch.equal(both, torch.cat(alone, 1))


def test_one_dimensional_numbers_run_over_the_valid_rectangle():
    encoding = SinePositionalEncoding(dims=1, **HOST)
    mask = rectangles([(2, 3)], 4, 5)
    pos = encoding.embed(TokenGrid(((4, 5), ), mask.flatten(1)))
    alone = encoding.embed(TokenGrid(((2, 3), )))
    assert torch.equal(pos[~mask.flatten(1)], alone[0])


def test_learned_table_too_small_says_both_sizes():
    encoding = LearnedPositionalEncoding(row_num_embed=6, **HOST)
    encoding.embed(TokenGrid(((6, 50), )))
    with pytest.raises(ValueError, match='6x50 cells.*7x3'):
        encoding.embed(TokenGrid(((7, 3), )))


def test_token_count_must_fit_the_grid():
    with pytest.raises(ValueError, match='5 tokens.*6 tokens'):
        PEG(**HOST).between(0, torch.zeros(1, 5, 8), None,
                            TokenGrid(((2, 3), )))
    with pytest.raises(ValueError, match='mask has 5'):
        TokenGrid(((2, 3), ), torch.zeros(1, 5, dtype=torch.bool))


def slow_peg(conv, x):
    """A depthwise convolution from its definition; ``x`` is ``(C, h, w)``."""
    c, h, w = x.shape
    r = conv.kernel_size[0] // 2
    out = x.clone()
    for i in range(h):
        for j in range(w):
            for a in range(-r, r + 1):
                for b in range(-r, r + 1):
                    if 0 <= i + a < h and 0 <= j + b < w:
                        out[:, i, j] += (
                            conv.weight[:, 0, a + r, b + r] *
                            x[:, i + a, j + b])
            out[:, i, j] += conv.bias
    return out


@given(
    sizes=st.lists(st.tuples(size, size), min_size=1, max_size=2),
    kernel=st.sampled_from([1, 3, 5]),
    prefix=st.integers(0, 2))
def test_peg_equals_its_definition(sizes, kernel, prefix):
    h, w = (max(s[i] for s in sizes) + 1 for i in range(2))
    mask = rectangles(sizes, h, w)
    tokens = torch.cat(
        [torch.zeros(len(sizes), prefix, dtype=torch.bool),
         mask.flatten(1)], 1)
    grid = TokenGrid(((h, w), ), tokens, prefix)
    x = torch.randn(len(sizes), prefix + h * w, 8)
    x[tokens] = torch.inf
    peg = PEG(kernel_size=kernel, **HOST)
    with torch.no_grad():
        out, _ = peg.between(0, x, None, grid)
        assert torch.equal(out[tokens], x[tokens])
        assert torch.equal(out[:, :prefix], x[:, :prefix])
        for i, (a, b) in enumerate(sizes):
            cells = x[i, prefix:].T.view(8, h, w)[:, :a, :b]
            expected = slow_peg(peg.blocks[0][0].conv, cells)
            found = out[i, prefix:].T.view(8, h, w)[:, :a, :b]
            assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_peg_acts_at_its_positions_only():
    peg = PEG(positions=(-1, 2), **HOST)
    grid, x = TokenGrid(((2, 3), )), torch.randn(1, 6, 8)
    changed = [
        i for i in range(-1, 4)
        if not torch.equal(peg.between(i, x, None, grid)[0], x)
    ]
    assert changed == [-1, 2]


def test_peg_without_zero_padding_shrinks_the_grid():
    peg = PEG(zero_padding=False, kernel_size=3, num_convs=2, **HOST)
    mask = rectangles([(9, 8), (5, 6)], 9, 8)
    grid = TokenGrid(((9, 8), ), mask.flatten(1))
    x = torch.randn(2, 72, 8)
    out, _ = peg.between(0, x, None, grid)
    small = peg.regrid(0, grid)
    assert small.shapes == ((5, 4), ) and out.shape == (2, 20, 8)
    assert torch.equal(small.mask[0], rectangles([(5, 4)], 5, 4)[0].flatten())
    expected = x[0].T.view(8, 9, 8)
    for conv in peg.blocks[0]:
        expected = expected[:, 1:-1, 1:-1] + conv.conv(expected[None])[0]
    assert_close(out[0], expected.flatten(1).T)
    assert peg.regrid(1, grid) is grid and not peg.keeps_grid
    with pytest.raises(ValueError, match='too small'):
        peg.between(0, torch.randn(1, 8, 8), None, TokenGrid(((2, 4), )))


@pytest.mark.parametrize('kind,count', [
    ('depthwise', 9 * 8),
    ('separable', 9 * 8 + 64),
    ('dense', 9 * 64),
])
def test_peg_parameters(kind, count):
    peg = PEG(kind=kind, bias=False, **HOST)
    assert sum(p.numel() for p in peg.parameters()) == count


def test_frozen_peg_stays_as_it_is():
    peg = PEG(trainable=False, norm_cfg=dict(type='BN'), **HOST).train()
    before = {k: v.clone() for k, v in peg.state_dict().items()}
    peg.between(0, torch.randn(2, 6, 8), None, TokenGrid(((2, 3), )))
    assert_close(peg.state_dict(), before, rtol=0, atol=0)
    assert not any(p.requires_grad for p in peg.parameters())


@given(
    lengths=st.lists(st.integers(0, 6), min_size=1, max_size=3),
    momentum=st.sampled_from([0.1, None]))
def test_valid_batch_norm_is_batch_norm_of_the_valid(lengths, momentum):
    mask = torch.arange(6)[None] >= torch.tensor(lengths)[:, None]
    x = torch.randn(len(lengths), 6, 8)
    ours = ValidBatchNorm(8, momentum=momentum)
    theirs = nn.BatchNorm1d(8, momentum=momentum)
    out = ours(x, mask)
    assert out.isfinite().all()
    if sum(lengths) > 1:
        assert_close(out[~mask], theirs(x[~mask]))
        assert_close(ours.state_dict(), theirs.state_dict())
    ours.eval(), theirs.eval()
    theirs.load_state_dict(ours.state_dict())
    assert_close(ours(x, mask), theirs(x.flatten(0, 1)).view_as(x))
