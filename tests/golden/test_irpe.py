"""iRPE against its reference implementation."""
import hashlib
import re

import numpy as np
import pytest
import torch
from golden import ROOT, load, load_official, official
from mmcv.cnn.bricks.transformer import MultiheadAttention as _Attention
from models import build, small_cfg
from test_transformers import OTHERS, given, run, tokens
from torch.testing import assert_close

from mmpe.backbones import VisionTransformer
from mmpe.layers import MultiheadAttention, term_attention
from mmpe.layers.scratch import Scratch
from mmpe.layers.term_attention import dense_attention, tiled_attention
from mmpe.layers.tile_terms import LOGIT_TERMS, ValueTerm
from mmpe.position import ImageRPE, TokenGrid
from mmpe.position.buckets import OffsetBuckets, piecewise_index

TOLERANCE = dict(rtol=1e-5, atol=1e-5)
METHODS = dict(euc='euclidean')


def names(file):
    with np.load(ROOT / f'irpe/{file}.npz') as f:
        return [str(name) for name in f['cases']]


@pytest.fixture(scope='module')
def numbers():
    cache = {}

    def get(file):
        if file not in cache:
            cache[file] = load(f'irpe/{file}')
        return cache[file]

    return get


def test_piecewise(numbers):
    c = numbers('piecewise')
    for kind in 'int', 'real':
        for params, expected, tie in zip(c['params'].tolist(),
                                         c[f'idx_{kind}'],
                                         c[f'near_tie_{kind}']):
            found = piecewise_index(c[f'x_{kind}'], *params)
            wrong = (found != expected) & ~tie
            assert not wrong.any(), params


@pytest.mark.parametrize('name', names('bucket_ids'))
def test_bucket_ids(numbers, name):
    c = numbers('bucket_ids')
    h, w, prefix, count, distinct, side = c[f'{name}.meta'].tolist()
    method, _, part = name.split('-')[0].partition('_')
    buckets = OffsetBuckets(part or METHODS.get(method, method), 'piecewise',
                            tuple(c[f'{name}.abg'].tolist()))
    map_ = buckets.on((h, w), prefix, torch.device('cpu'))
    assert torch.equal(map_.table, c[f'{name}.offset_table'].long())
    assert map_.num_buckets == count
    ids = map_.ids()
    assert len(ids.unique()) == distinct and len(ids) == side
    if f'{name}.ids' in c:
        assert torch.equal(ids, c[f'{name}.ids'].long())
    with np.load(ROOT / 'irpe/bucket_ids.npz') as f:
        digest = str(f[f'{name}.sha256'])
    raw = ids.numpy().astype('<i8').tobytes()
    assert hashlib.sha256(raw).hexdigest() == digest


def build_rpe(flag, heads, dim, tables, prefix=0):
    """An encoding of one layer with the reference's tables."""
    item = ImageRPE.from_flag(flag)
    item.pop('type')
    rpe = ImageRPE(
        **item,
        embed_dims=heads * dim,
        num_heads=heads,
        num_layers=1,
        num_prefix=prefix)
    own = {'rp_rows': '_rows', 'rp_cols': '_cols'}
    weights = {}
    for key, value in tables.items():
        letter, part = re.match(r'rpe_([qkv])\.(?:(rp_\w+)\.)?lookup',
                                key).groups()
        weights[f'tables.0.{letter}{own.get(part, "")}'] = value
    rpe.load_state_dict(weights)
    return rpe, dict(zip(weights, tables))


def table_grads(rpe, theirs):
    return {theirs[n]: p.grad for n, p in rpe.named_parameters()}


def prefixed(c, start):
    return {k[len(start):]: v for k, v in c.items() if k.startswith(start)}


def module(term, x, heads):
    """A term by itself, tile by tile, ``(B, H, N, N)`` or, on v, ``D``, and
    its transpose: gradients of x and of the table."""
    return _Module.apply(x, term.table, term, heads)


class _Module(torch.autograd.Function):

    @staticmethod
    def forward(ctx, x, table, term, heads):
        ctx.save_for_backward(x, table)
        ctx.term, ctx.heads = term, heads
        tile_term, _ = _tile_term(term, table, x, heads)
        q = x.flatten(0, 1)
        out = []
        for tile in _tiles(term.map):
            if term.target == 'v':
                out.append(tile_term.output(q[:, tile], tile))
                continue
            count = len(table) if term.target == 'bias' else len(q)
            pairs = q.new_empty(count, tile.stop - tile.start, q.shape[1])
            tile_term.logits(q[:, tile], tile, pairs)
            out.append(pairs)
        shape = (-1, len(table) if term.target == 'bias' else heads)
        return torch.cat(out, 1).unflatten(0, shape)

    @staticmethod
    def backward(ctx, grad):
        x, table = ctx.saved_tensors
        term = ctx.term
        tile_term, dk = _tile_term(term, table, x, ctx.heads)
        q = x.flatten(0, 1)
        dq = torch.zeros_like(q)
        grad = grad.flatten(0, 1)
        for tile in _tiles(term.map):
            if term.target == 'v':
                tile_term.backward(q[:, tile], grad[:, tile], dq[:, tile],
                                   tile)
            else:
                tile_term.backward(grad[:, tile].contiguous(), q[:, tile],
                                   dq[:, tile], tile)
        if term.target != 'v':
            tile_term.finish()
        return (dq + dk).view_as(x), tile_term.dtable, None, None


def _tile_term(term, table, x, heads):
    keys = x.flatten(0, 1)
    dk = torch.zeros_like(keys)
    cls = ValueTerm if term.target == 'v' else LOGIT_TERMS[term.target]
    return cls(term.map, table, torch.zeros_like(table), keys, dk, 1., heads,
               Scratch(x)), dk


def _tiles(map_):
    starts = [*([0] if map_.num_prefix else []),
              *range(map_.num_prefix, map_.num_tokens, map_.shape[1])]
    return map(slice, starts, [*starts[1:], map_.num_tokens])


@pytest.mark.parametrize('name', names('modules'))
def test_modules(numbers, name):
    c = numbers('modules')
    tag, case = name.split('/')
    method, mode, letter, shared = case.split('-')
    _, heads, dim, h, w, prefix = c[f'{tag}.geom'].tolist()
    flag = (f"rpe-{c[f'{tag}.ratio']}-{method}-{mode}-"
            f'{int(shared == "shared")}-{letter}')
    tables = {f'rpe_{letter}.{k}': v
              for k, v in prefixed(c, f'{name}.table.').items()}
    rpe, theirs = build_rpe(flag, heads, dim, tables, prefix)
    grid = TokenGrid(((h, w), ), None, prefix, torch.device('cpu'))
    kind = 'v' if letter == 'v' else 'qk'
    x = c[f'{tag}.x_{kind}'].clone().requires_grad_()
    out = sum(module(term, x, heads) for term in rpe.terms(0, grid))
    if letter == 'q':  # an attention adds the transpose
        out = out.transpose(-2, -1)
    assert_close(out, c[f'{name}.out'], **TOLERANCE)
    (out * c[f'{tag}.g_{kind}']).sum().backward()
    if mode == 'ctx':
        assert_close(x.grad, c[f'{name}.grad_x'], **TOLERANCE)
    for key, value in table_grads(rpe, theirs).items():
        key = key.split('.', 1)[1]
        assert_close(value, c[f'{name}.grad_table.{key}'], rtol=1e-5,
                     atol=1e-4)


@pytest.mark.parametrize('attend', [dense_attention, tiled_attention])
@pytest.mark.parametrize('name', names('mha'))
def test_mha(numbers, name, attend, monkeypatch):
    c = numbers('mha')
    batch, dims, heads, h, w = c['geom'].tolist()
    module = _Attention(dims, heads, batch_first=True)
    module.attn.load_state_dict({
        k: c[f'w.{k}']
        for k in ('in_proj_weight', 'in_proj_bias', 'out_proj.weight',
                  'out_proj.bias')
    })
    MultiheadAttention.adopt(module)
    threshold = 0 if attend is tiled_attention else h * w
    monkeypatch.setattr(term_attention, 'DENSE_TOKENS', threshold)
    query, value = (c[k].transpose(0, 1).clone().requires_grad_()
                    for k in ('query', 'value'))
    kwargs = dict(key_padding_mask=c['key_padding_mask'])
    flag, _, mask = name.partition('+')
    if mask:
        kwargs['attn_mask'] = c['attn_mask']
    rpe = None
    if flag != 'none':
        tables = prefixed(c, f'{name}.table.')
        rpe, theirs = build_rpe(flag, heads, dims // heads, tables)
        grid = TokenGrid(((h, w), ), c['key_padding_mask'])
        kwargs['terms'] = rpe.terms(0, grid)
    zero = torch.zeros_like(value)
    out = module(query, query, value, identity=zero, **kwargs)
    assert_close(out.transpose(0, 1), c[f'{name}.out'], **TOLERANCE)
    (out * c['grad_out'].transpose(0, 1)).sum().backward()
    for x, key in (query, 'query'), (value, 'value'):
        assert_close(
            x.grad.transpose(0, 1), c[f'{name}.grad_{key}'], **TOLERANCE)
    if rpe is not None:
        for key, grad in table_grads(rpe, theirs).items():
            assert_close(grad, c[f'{name}.grad_table.{key}'], **TOLERANCE)


def test_detr_transformer(numbers):
    c = numbers('detr_transformer')
    _, dims, heads, _, _, queries, encoder, decoder, ffn, pre_norm = c[
        'geom'].tolist()
    assert not pre_norm
    with np.load(ROOT / 'irpe/detr_transformer.npz') as f:
        flag = str(f['flag'])
    pos = tokens([c['pos']])
    cfg = small_cfg(
        'detr',
        dims=dims,
        heads=heads,
        num_queries=queries,
        positional_encoding=[*given(pos), ImageRPE.from_flag(flag)])
    for coder, layers in (cfg.encoder, encoder), (cfg.decoder, decoder):
        coder.num_layers = layers
        coder.layer_cfg.ffn_cfg.feedforward_channels = ffn
    model = build(cfg)
    weights = official(c, 'transformer.', 'sd.')
    weights['query_embed.weight'] = c['query_embed']
    load_official(model, weights, 'irpe-detr', OTHERS)
    memory, states = run(model, (c['src'], ), c['mask'])
    valid = ~c['mask'].flatten(1)
    assert_close(memory[valid], tokens([c['memory']])[valid], **TOLERANCE)
    assert_close(states, c['hs'].to(states), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('name', names('deit_attention'))
@pytest.mark.parametrize('threshold', [0, 512])
def test_deit_attention(numbers, name, threshold, monkeypatch):
    c = numbers('deit_attention')
    _, dims, heads, n = c['geom'].tolist()
    method, mode, shared, target, prefix, ratio = name.split('-')
    prefix = int(prefix[1:])
    flag = f'rpe-{ratio[1:]}-{method}-{mode}-{shared}-{target}'
    model = VisionTransformer(
        dict(
            embed_dims=dims,
            num_layers=1,
            num_heads=heads,
            feedforward_channels=dims),
        img_size=n,
        patch_size=1,
        positional_encoding=[ImageRPE.from_flag(flag)],
        with_dist_token=prefix > 1,
        with_cls_token=prefix > 0)
    weights = official(c, 'blocks.0.attn.', f'{name}.sd.')
    load_official(model, weights, 'irpe-deit',
                  ('patch_embed', 'cls_token', 'dist_token', 'ln1', 'layers.0.ln',
                   'layers.0.ffn'))
    x = c[f'{name}.x']
    grid = TokenGrid(((n, n), ), None, prefix, torch.device('cpu'))
    monkeypatch.setattr(term_attention, 'DENSE_TOKENS', threshold)
    out = model.layers[0].attn(
        x, identity=torch.zeros_like(x),
        terms=model.positional_encoding.terms(0, grid))
    assert_close(out, c[f'{name}.out'], **TOLERANCE)


def attend_as_vit(weights, heads, x, terms):
    """An attention whose weights have DeiT's and Swin's names."""
    module = _Attention(x.shape[2], heads, batch_first=True)
    module.attn.load_state_dict({
        'in_proj_weight': weights['qkv.weight'],
        'in_proj_bias': weights['qkv.bias'],
        'out_proj.weight': weights['proj.weight'],
        'out_proj.bias': weights['proj.bias']
    })
    MultiheadAttention.adopt(module)
    return module(x, identity=torch.zeros_like(x), terms=terms)
