"""Encodings against their reference implementations."""
import pytest
import torch
from golden import case, cases, load
from torch.testing import assert_close

from mmpe.position import (PEG, LearnedPositionalEncoding,
                           SinePositionalEncoding, TokenGrid)

TOLERANCE = dict(rtol=1e-5, atol=1e-5)
BN_RELU = dict(bias=False, norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU'))


def sine(embed_dims, **kwargs):
    return SinePositionalEncoding(
        embed_dims=embed_dims, num_heads=1, num_layers=1, **kwargs)


def peg(channels, **kwargs):
    return PEG(embed_dims=channels, num_heads=1, num_layers=1, **kwargs)


@pytest.mark.parametrize('name', cases('pe/sine2d'))
def test_sine2d(name):
    c = case('pe/sine2d', name)
    mask = c['mask']
    keys = 'num_feats', 'temperature', 'scale', 'offset', 'eps'
    encoding = sine(
        2 * c['num_feats'],
        normalize=bool(c['normalize']),
        **{k: c[k] for k in keys})
    pos = encoding.embed(TokenGrid((mask.shape[1:], ), mask.flatten(1)))
    expected = c['pos'].flatten(2).transpose(1, 2)
    valid = ~mask.flatten(1)
    assert_close(pos[valid], expected[valid], **TOLERANCE)
    assert pos.isfinite().all()


def test_learned2d():
    c = load('pe/learned2d')
    rows, width = c['row_embed'].shape
    encoding = LearnedPositionalEncoding(
        embed_dims=2 * width,
        num_heads=1,
        num_layers=1,
        row_num_embed=rows,
        col_num_embed=len(c['col_embed']))
    encoding.load_state_dict({
        'row_embed.weight': c['row_embed'],
        'col_embed.weight': c['col_embed']
    })
    pos = encoding.embed(TokenGrid(((c['h'], c['w']), )))
    expected = c['pos'].flatten(2).transpose(1, 2)
    assert_close(pos.expand_as(expected), expected, rtol=0, atol=0)


@pytest.mark.parametrize('key', ['t2t_table', 'cct_table'])
def test_sine1d(key):
    c = load('pe/sine1d')
    encoding = sine(c['dim'], dims=1, start=0)
    for grid in (TokenGrid(((1, c['n']), )),
                 TokenGrid(((c['n'] - 1, 1), ), num_prefix=1)):
        assert_close(encoding.embed(grid), c[key], **TOLERANCE)


def test_sine1d_masked_cct():
    # CCT's extra row of zeros is a padding token, which no valid one sees.
    c = load('pe/sine1d')
    pos = sine(c['dim'], dims=1, start=0).embed(TokenGrid(((1, c['n']), )))
    assert_close(pos, c['cct_masked_table'][:, 1:], **TOLERANCE)


def test_sine1d_lape():
    c = load('pe/sine1d')
    n = c['lape_grid']
    pos = sine(
        c['lape_dim'], dims=1, start=0).embed(
            TokenGrid(((n, n), ), num_prefix=1))
    assert_close(pos[0], c['lape_1d_pos_embed'], **TOLERANCE)


def test_sine2d_lape():
    c = load('pe/sine1d')
    h, w = c['lape2d_h'], c['lape2d_w']
    encoding = sine(c['lape2d_dim'], order='xy', start=0)
    pos = encoding.embed(TokenGrid(((h, w), )))
    expected = c['lape2d_table'].flatten(1).T[None]
    assert_close(pos, expected, **TOLERANCE)

    n = c['lape_grid']
    pos = sine(
        c['lape_dim'], order='xy', start=0).embed(
            TokenGrid(((n, n), ), num_prefix=1))
    assert_close(pos, c['lape_2d_pos_embed'], **TOLERANCE)


@pytest.mark.parametrize('name', [
    name for name in cases('pe/peg') if case('pe/peg', name)['stride'] == 1
])
def test_peg(name):
    c = case('pe/peg', name)
    encoding = peg(c['x'].shape[2])
    encoding.blocks[0][0].conv.load_state_dict(
        dict(weight=c['weight'], bias=c['bias']))
    shape = c['H'], c['W']
    out, _ = encoding.between(0, c['x'], None, TokenGrid((shape, )))
    assert_close(out, c['out'], **TOLERANCE)
    if 'cls' in c:
        x = torch.cat([c['cls'], c['x']], dim=1)
        out, _ = encoding.between(0, x, None,
                                  TokenGrid((shape, ), num_prefix=1))
        assert_close(out, c['out_with_cls'], **TOLERANCE)


@pytest.mark.parametrize('name', cases('pe/peg_masked'))
def test_peg_masked(name):
    c = case('pe/peg_masked', name)
    encoding = peg(c['x'].shape[2])
    encoding.blocks[0][0].conv.load_state_dict(
        dict(weight=c['weight'], bias=c['bias']))
    grid = TokenGrid(((c['H'], c['W']), ), c['mask'])
    out, _ = encoding.between(0, c['x'], None, grid)
    assert_close(out, c['out_plain'], **TOLERANCE)


@pytest.mark.parametrize('training', [False, True])
@pytest.mark.parametrize('name', cases('pe/peg_masked'))
def test_peg_masked_bn_relu(name, training):
    c = case('pe/peg_masked', name)
    encoding = peg(c['x'].shape[2], **BN_RELU).train(training)
    conv = encoding.blocks[0][0]
    conv.conv.load_state_dict(dict(weight=c['weight']))
    conv.norm.load_state_dict(
        {k[3:]: v
         for k, v in c.items() if k.startswith('bn_') and 'after' not in k},
        strict=False)
    grid = TokenGrid(((c['H'], c['W']), ), c['mask'])
    out, _ = encoding.between(0, c['x'], None, grid)
    mode = 'train' if training else 'eval'
    assert_close(out, c[f'out_bnrelu_{mode}'], **TOLERANCE)
    valid = ~c['mask']
    leaky = c[f'leaky_literal_{mode}']
    assert (out - leaky)[valid].abs().max() > 0.1, 'padding leaked'
    if training:
        for key in 'running_mean', 'running_var':
            assert_close(
                getattr(conv.norm, key), c[f'bn_{key}_after'], **TOLERANCE)
