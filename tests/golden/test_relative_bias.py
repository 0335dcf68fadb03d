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
