"""Attention against MMCV's."""
import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmcv.cnn.bricks.transformer import MultiheadAttention as Theirs
from torch.testing import assert_close

from mmpe.layers import MultiheadAttention


def pair(**kwargs):
    theirs = Theirs(16, 4, batch_first=True, **kwargs)
    theirs.attn.in_proj_bias.data.normal_()
    ours = copy.deepcopy(theirs)
    MultiheadAttention.adopt(ours)
    return theirs, ours


@given(
    n=st.integers(1, 5),
    m=st.integers(1, 5),
    own=st.booleans(),
    padded=st.booleans(),
    mask=st.sampled_from([None, 'bool', 'float', 'heads']))
def test_equals_mmcv(n, m, own, padded, mask):
    theirs, ours = pair()
    query, query_pos = torch.randn(2, 2, n, 16)
    if own:
        key, key_pos, m = query, query_pos, n
        value = query
    else:
        key, key_pos, value = torch.randn(3, 2, m, 16)
    kwargs = dict(query_pos=query_pos, key_pos=key_pos)
    if padded:
        kwargs['key_padding_mask'] = torch.arange(m)[None] >= torch.tensor(
            [[m], [max(1, m - 1)]])
    if mask:
        shape = (8, n, m) if mask == 'heads' else (n, m)
        attn_mask = torch.randn(shape)
        if mask != 'float':
            attn_mask = attn_mask > 0.5
            attn_mask[..., 0] = False
        kwargs['attn_mask'] = attn_mask
        if mask == 'float':
            # PyTorch warns of mixed types, MMDetection doesn't mix them.
            kwargs.pop('key_padding_mask', None)
    assert_close(
        ours(query, key, value, **kwargs), theirs(query, key, value, **kwargs))


def test_float_mask_and_padding():
    _, ours = pair()
    x, mask = torch.randn(2, 4, 16), torch.randn(4, 4)
    padding = torch.tensor([[False] * 4, [False, False, True, True]])
    out = ours(x, attn_mask=mask, key_padding_mask=padding)
    alone = ours(x[1:, :2], attn_mask=mask[:2, :2])
    assert_close(out[1:, :2], alone)


def test_all_keys_padded_stays_finite():
    _, ours = pair()
    x = torch.randn(2, 3, 16, requires_grad=True)
    padding = torch.tensor([[True] * 3, [False] * 3])
    ours(x, key_padding_mask=padding).sum().backward()
    assert x.grad.isfinite().all()


def test_keys_without_embedding_get_none():
    # MMCV adds query_pos to keys that have none, if the shapes agree.
    _, ours = pair()
    x, y, pos = torch.randn(3, 1, 4, 16)
    zero = torch.zeros_like(pos)
    assert_close(
        ours(x, y, y, query_pos=pos),
        ours(x, y, y, query_pos=pos, key_pos=zero))


def test_dropout_is_that_of_the_config():
    theirs, ours = pair(attn_drop=0.5, proj_drop=0.25)
    x = torch.randn(64, 8, 16)
    zero = torch.zeros_like(x)
    for module in theirs, ours:
        module.train()
        out = torch.stack([module(x, identity=zero) for _ in range(50)])
        assert abs((out == 0).float().mean() - 0.25) < 0.01
    assert_close(ours.eval()(x), theirs.eval()(x))


def test_other_attentions_are_left_alone():
    odd = Theirs(16, 4, batch_first=True, kdim=8)
    MultiheadAttention.adopt(odd)
    assert type(odd) is Theirs


@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    _, ours = pair()
    x = torch.randn(2, 6, 16)
    with torch.autocast('cpu', dtype=dtype):
        out = ours(x, query_pos=x, key_pos=x)
    exact = ours(x, query_pos=x, key_pos=x)
    assert (out - exact).abs().mean() < 4 * torch.finfo(dtype).eps
