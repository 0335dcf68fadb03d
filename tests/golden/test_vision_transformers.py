"""LaPE, resized tables and whole vision transformers."""
import pytest
import torch
import torch.nn.functional as F
from golden import load, load_official, official
from test_irpe import prefixed
from torch.testing import assert_close

from mmpe.backbones import VisionTransformer
from mmpe.layers import PositionStream, ViTLayer
from mmpe.position import (LaPE, PositionEmbedding, PositionEncodingList,
                           SinePositionalEncoding, TokenGrid)

TOLERANCE = dict(rtol=1e-5, atol=1e-5)
WHOLE = dict(rtol=1e-4, atol=1e-4)
FORMS = dict(prog='progressive', indep='independent')


def without(weights, *names):
    return {k: v for k, v in weights.items()
            if not any(name in k for name in names)}


class TestBlocks:
    """Stacked blocks: LaPE, its eta, and the other ways of joining."""

    def run(self, c, items, join, check=lambda *args: None):
        depth, dims = c['depth'], c['x'].shape[2]
        host = dict(embed_dims=dims, num_heads=c['num_heads'],
                    num_layers=depth)
        encoding = PositionEncodingList(items, dict(norm_eps=1e-6), **host)
        if hasattr(encoding, 'lape'):
            weights = {
                f'norms.{l}.{k}': c[f'sd__{l}.pe_norm.{k}']
                for l in range(len(encoding.lape.norms))
                for k in ('weight', 'bias')
            }
            encoding.lape.load_state_dict(weights)
        layers = []
        for i in range(depth):
            layers.append(
                ViTLayer(dims, c['num_heads'], 2 * dims, join=join))
            own = official(c, 'blocks.0.', f'sd__{i}.')
            holder = torch.nn.ModuleDict(
                dict(layers=torch.nn.ModuleList([layers[-1]])))
            load_official(holder, without(own, 'pe_norm'), 'deit')
        x, pos = c['x'], c['omega']
        grid = TokenGrid(((1, x.shape[1]), ), device=x.device)
        if join == 'input':
            x, pos = x + pos, None
        stream = PositionStream(encoding, grid, pos)
        x = stream.enter(0, x)
        for i, layer in enumerate(layers):
            pos = stream.pos(i)
            x = stream.leave(i, layer(x, pos, grid, []))
            check(i, x, pos)
        return x

    @pytest.mark.parametrize('form', FORMS)
    def test_lape(self, form):
        c = load('pe/lape_block')

        def check(i, x, pos):
            assert_close(x, c[f'{form}__x{i + 1}'], **TOLERANCE)
            assert_close(pos, c[f'{form}__pe{i}'], **TOLERANCE)

        self.run(c, [dict(type='mmpe.LaPE', form=FORMS[form])], 'attention',
                 check)

    @pytest.mark.parametrize('eta', range(5))
    @pytest.mark.parametrize('form', FORMS)
    def test_eta(self, form, eta):
        c = load('pe/lape_block')
        items = [dict(type='mmpe.LaPE', form=FORMS[form], num_layers=eta)]
        if not eta:  # no position at all
            items, c['omega'] = [], torch.zeros_like(c['omega'])
        assert_close(
            self.run(c, items, 'attention'), c[f'eta{eta}__{form}_x_last'],
            **TOLERANCE)

    @pytest.mark.parametrize('key,join', [('default', 'input'),
                                          ('share', 'shared')])
    def test_joins(self, key, join):
        c = load('pe/lape_block')
        assert_close(self.run(c, [], join), c[f'{key}__x_last'], **TOLERANCE)


PARTS = {
    'omega': (False, None, False),
    'gs_omega': (False, 'scalar', False),
    'gv_omega': (False, 'channel', False),
    'gv_omega_b': (False, 'channel', True),
    'norm': (True, None, False),
    'gs_norm': (True, 'scalar', False),
    'gv_norm': (True, 'channel', False),
    'gv_norm_b': (True, 'channel', True),
}


@pytest.mark.parametrize('form', FORMS.values())
@pytest.mark.parametrize('part', PARTS)
def test_parts_of_the_norm(part, form):
    c = load('pe/lape_variants')
    normalize, scale, shift = PARTS[part]
    lape = LaPE(
        form=form,
        normalize=normalize,
        scale=scale,
        shift=shift,
        norm_eps=c['eps'],
        embed_dims=c['omega'].shape[2],
        num_heads=1,
        num_layers=c['depth'])
    gammas = dict(
        channel=c['gamma_vec'], scalar=c['gamma_scalar'][:, None]).get(scale)
    weights = {}
    for i in range(c['depth']):
        if gammas is not None:
            weights[f'norms.{i}.weight'] = gammas[i]
        if shift:
            weights[f'norms.{i}.bias'] = c['beta_vec'][i]
    lape.load_state_dict(weights)
    grid = TokenGrid(((1, c['omega'].shape[1]), ))
    _, pos = lape.between(-1, None, c['omega'], grid)
    for i, expected in enumerate(c[f'{part}__{form}']):
        assert_close(lape.layer_embedding(i, pos, grid), expected, **TOLERANCE)
        _, pos = lape.between(i, None, pos, grid)


RESIZED = {
    'cls_bicubic': (1, {}),
    'clsdist_bicubic': (2, {}),
    'none_bicubic': (0, {}),
    'cls_t2t_bicubic': (1, {}),
    'cls_timm_0_4_12': (1, dict(interpolation='bilinear')),
    'none_cct_bilinear': (0, dict(interpolation='bilinear')),
    'cls_cct_bilinear': (1, dict(interpolation='bilinear')),
    'nonsquare_bicubic': (0, {}),
}


@pytest.mark.parametrize('name', RESIZED)
@pytest.mark.parametrize('loading', [False, True])
def test_resize(name, loading):
    c = load('pe/resize')
    prefix, arguments = RESIZED[name]
    table = c[name.split('_')[0] + '_in'][0]
    if name.startswith('nonsquare'):
        before, after = (tuple(c[f'nonsquare_{k}'].tolist())
                         for k in ('from', 'to'))
    else:
        before, after = ((c[f'grid_{k}'], ) * 2 for k in ('from', 'to'))
    encoding = PositionEmbedding(
        grid=after if loading else before,
        embed_dims=table.shape[1],
        num_heads=1,
        num_layers=1,
        num_prefix=prefix,
        **arguments)
    weights = dict(weight=table)
    if name.startswith('nonsquare'):  # else the grid isn't told
        weights['weight'] = table.unflatten(0, before)
    encoding.load_state_dict(weights)
    pos = encoding.embed(TokenGrid((after, ), num_prefix=prefix))
    assert_close(pos, c[name], **TOLERANCE)


def build_model(c, items, **kwargs):
    dims = c['embed_dim']
    arch = dict(
        embed_dims=dims,
        num_layers=c['depth'],
        num_heads=c['num_heads'],
        feedforward_channels=2 * dims)
    model = VisionTransformer(
        arch,
        img_size=c['image'].shape[-1],
        patch_size=c['patch_size'],
        positional_encoding=items,
        **kwargs)
    return model.eval()


def logits(c, model):
    features, = model(c['image'])
    return features, features @ c['sd__head.weight'].T + c['sd__head.bias']


JOINED = dict(basic={}, share=dict(join='shared'))
LAPE = dict(LaPE='progressive', LaPEindependent='independent')
TABLES = {
    'learnable': dict(type='mmpe.PositionEmbedding'),
    '1D_sin': dict(type='mmpe.SinePositionalEncoding', dims=1, start=0),
    '2D_sin': dict(type='mmpe.SinePositionalEncoding', order='xy', start=0),
}


@pytest.mark.parametrize('table,variant', [
    (table, variant) for table in TABLES
    for variant in ('basic', 'LaPE', 'LaPEindependent', 'share')
    if table == 'learnable' or variant != 'share'
])
def test_lape_model(table, variant):
    c = load('pe/lape_model')
    items = [TABLES[table]]
    if variant in LAPE:
        items.append(dict(type='mmpe.LaPE', form=LAPE[variant]))
    model = build_model(
        c, items, out_type='cls_token', **JOINED.get(variant, {}))
    weights = without(official(c), 'head.')
    if variant not in LAPE:
        weights = without(weights, 'pe_norm')
    if table != 'learnable':
        weights = without(weights, 'pos_embed')
        encoding = SinePositionalEncoding(
            **{k: v for k, v in TABLES[table].items() if k != 'type'},
            embed_dims=c['embed_dim'], num_heads=1, num_layers=1)
        pos = encoding.embed(TokenGrid(((4, 4), ), num_prefix=1))
        expected = c[f'{table}_{variant}__pos_embed'].view(1, 17, -1)
        assert_close(pos, expected, **TOLERANCE)
    load_official(model, weights, 'lape')
    features, out = logits(c, model)
    assert_close(features, c[f'{table}_{variant}__features'], **WHOLE)
    assert_close(out, c[f'{table}_{variant}__logits'], **WHOLE)


def test_unshared():
    c = load('pe/lape_model')
    model = build_model(
        c, [TABLES['learnable']], join='unshared', out_type='cls_token')
    weights = without(official(c), 'head.', 'pe_norm', 'pos_embed')
    for i in range(c['depth']):
        weights[f'pos_embed{i}'] = c[f'unshare__pos_embed{i}']
    load_official(model, weights, 'lape')
    assert_close(logits(c, model)[1], c['unshare__logits'], **WHOLE)


@pytest.mark.parametrize('name,positions', [
    ('none', ()),
    ('pos_m1', (-1, )),
    ('pos_0', (0, )),
    ('pos_0_1', (0, 1)),
    ('gap_pos_0', (0, )),
])
def test_cpvt(name, positions):
    c = prefixed(load('pe/cpvt_model'), 'deit__')
    gap = name.startswith('gap')
    items = [dict(type='mmpe.PEG', positions=positions)] if positions else []
    model = build_model(
        c, items, with_cls_token=not gap,
        out_type='avg_featmap' if gap else 'cls_token')
    weights = without(official(c), 'head.', 'pos_embed')
    if gap:
        del weights['cls_token']
    for i, position in enumerate(positions):
        for key in 'weight', 'bias':
            weights[f'pos_block.{i}.proj.0.{key}'] = c[
                f'peg__{max(position, 0)}.proj.0.{key}']
    load_official(model, weights, 'cpvt')
    assert_close(logits(c, model)[1], c[f'logits_{name}'], **WHOLE)


def test_twins():
    """Twins-PCPVT in MMSegmentation's form, whose attention is PyTorch's."""
    from mmseg.models.backbones import PCPVT
    c = prefixed(load('pe/cpvt_model'), 'pcpvt__')
    depths = [int(n) for n in c['depths']]
    model = PCPVT(
        embed_dims=[int(n) for n in c['embed_dims']],
        patch_sizes=[c['patch_size'], *[2] * (len(depths) - 1)],
        strides=[c['patch_size'], *[2] * (len(depths) - 1)],
        num_heads=[int(n) for n in c['num_heads']],
        mlp_ratios=[c['mlp_ratio']] * len(depths),
        out_indices=(len(depths) - 1, ),
        qkv_bias=True,
        norm_cfg=dict(type='LN', eps=1e-6),
        depths=depths,
        sr_ratios=[int(n) for n in c['sr_ratios']],
        norm_after_stage=False,
        drop_path_rate=0.).eval()
    weights = without(official(c), 'head.')
    norm = [weights.pop(f'norm.{k}') for k in ('weight', 'bias')]
    load_official(model, weights, 'twins')
    features = model(c['image'])[0].flatten(2).transpose(1, 2)
    features = F.layer_norm(features, features.shape[2:], *norm, 1e-6)
    assert_close(features.mean(1), c['features'], **WHOLE)
