"""Swin's bias of offsets, with and without a class token."""
import pytest
import torch
from golden import load
from test_irpe import TOLERANCE, attend_as_vit, prefixed
from torch.testing import assert_close

from mmpe.layers import term_attention
from mmpe.position import RelativePositionBias, TokenGrid


@pytest.mark.parametrize('threshold', [0, 512])
@pytest.mark.parametrize('kind,out,prefix', [('swin', 'out', 0),
                                             ('lape', 'out_plain', 1)])
def test_relative_bias(kind, out, prefix, threshold, monkeypatch):
    c = prefixed(load('pe/rpe'), f'{kind}_')
    weights = prefixed(c, 'sd__')
    heads, x = c['num_heads'], c['x']
    shape = tuple(c['window']) if kind == 'swin' else (c['grid'], ) * 2
    shape = tuple(int(n) for n in shape)
    bias = RelativePositionBias(
        grid=shape,
        embed_dims=x.shape[2],
        num_heads=heads,
        num_layers=1,
        num_prefix=prefix)
    table = weights['relative_position_bias_table'].T
    bias.tables[0].data = table.reshape(bias.tables[0].shape)
    grid = TokenGrid((shape, ), None, prefix, torch.device('cpu'))
    monkeypatch.setattr(term_attention, 'DENSE_TOKENS', threshold)
    assert_close(
        attend_as_vit(weights, heads, x, bias.terms(0, grid)), c[out],
        **TOLERANCE)


def test_lape_on_the_bias():
    c = prefixed(load('pe/rpe'), 'lape_')
    weights = prefixed(c, 'sd__')
    n, x = c['grid'], c['x']
    bias = RelativePositionBias(
        grid=(n, n),
        layer_norm=True,
        embed_dims=x.shape[2],
        num_heads=c['num_heads'],
        num_layers=1,
        num_prefix=1)
    table = weights['relative_position_bias_table'].T
    bias.tables[0].data = table.reshape(bias.tables[0].shape)
    bias.norms[0].load_state_dict(prefixed(weights, 'pe_norm.'))
    grid = TokenGrid(((n, n), ), None, 1, torch.device('cpu'))
    term, = bias.terms(0, grid)
    assert_close(term.bias[:, 1:, 1:], c['bias_ln'], **TOLERANCE)
    assert_close(
        attend_as_vit(weights, c['num_heads'], x, [term]), c['out_ln'],
        **TOLERANCE)


@pytest.mark.parametrize('shape,valid', [((3, 4), None), ((3, 3), (3, 2))])
def test_lape_on_the_bias_needs_its_grid(shape, valid):
    bias = RelativePositionBias(
        grid=(3, 3), layer_norm=True, embed_dims=4, num_heads=2, num_layers=1)
    mask = None
    if valid:
        mask = torch.ones(1, *shape, dtype=torch.bool)
        mask[:, :valid[0], :valid[1]] = False
        mask = mask.flatten(1)
    with pytest.raises(ValueError, match='layer_norm'):
        bias.terms(0, TokenGrid((shape, ), mask, device=torch.device('cpu')))
