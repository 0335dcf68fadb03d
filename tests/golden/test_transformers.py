"""Whole transformers against the official DETR and Deformable DETR."""
import pytest
import torch
from golden import case, cases, load, load_official, official
from models import build, samples, small_cfg
from torch.testing import assert_close

from mmpe.position import PositionEncoding
from mmpe.registry import MODELS

TOLERANCE = dict(rtol=1e-4, atol=1e-4)
# What the golden files have no numbers for.
OTHERS = 'backbone.', 'neck.', 'bbox_head.', 'positional_encoding.peg'


@MODELS.register_module()
class GoldenEmbedding(PositionEncoding):
    """The embedding that the reference was given, ``(B, N, C)``."""

    def __init__(self, pos, **host):
        super().__init__(**host)
        self.pos = pos

    def embed(self, grid):
        return self.pos


def tokens(maps):
    return torch.cat([m.flatten(2).transpose(1, 2) for m in maps], dim=1)


def given(pos):
    return [dict(type='mmpe.GoldenEmbedding', pos=pos)]


def valid_samples(mask):
    """Samples whose masks are ``mask`` at a stride of one."""
    sizes = [(int((~m[:, 0]).sum()), int((~m[0]).sum())) for m in mask]
    return samples(sizes, tuple(mask.shape[1:]))


def run(model, maps, mask):
    """Memory ``(B, N, C)`` and the decoder's states ``(L, B, Q, C)``."""
    model.eval()
    with torch.no_grad():
        enc, dec = model.pre_transformer(maps, valid_samples(mask))
        memory = model.forward_encoder(**enc)
        inputs, _ = model.pre_decoder(**memory)
        states = model.forward_decoder(**dec, **inputs)['hidden_states']
    return memory['memory'], states


class TestDETR:

    @pytest.fixture
    def c(self):
        return load('pe/detr_transformer')

    def model(self, c, items, **kwargs):
        cfg = small_cfg(
            'detr',
            dims=c['src'].shape[1],
            heads=c['num_heads'],
            num_queries=len(c['query_embed']),
            positional_encoding=items,
            **kwargs)
        cfg.encoder.num_layers = c['enc_layers']
        cfg.decoder.num_layers = c['dec_layers']
        model = build(cfg)
        weights = official(c, 'transformer.')
        weights['query_embed.weight'] = c['query_embed']
        load_official(model, weights, 'detr', OTHERS)
        return model

    def check(self, c, model, memory=None, hs=None):
        out, states = run(model, (c['src'], ), c['mask'])
        if memory:
            assert_close(out, tokens([c[memory]]), **TOLERANCE)
        if hs:
            assert_close(states, c[hs], **TOLERANCE)

    def test_sine(self, c):
        model = self.model(c, given(tokens([c['pos']])))
        self.check(c, model, 'sine__memory', 'sine__hs')

    def test_none_anywhere(self, c):
        model = self.model(c, [], memory_positional_encoding=None)
        self.check(c, model, 'nope_all__memory', 'nope_all__hs')

    def test_none_in_the_encoder(self, c):
        keys = given(tokens([c['pos']]))
        model = self.model(c, [], memory_positional_encoding=keys)
        self.check(c, model, hs='nope_encoder_only__hs')

    @pytest.mark.parametrize('keys', ['sine', 'none'])
    def test_peg(self, c, keys):
        items = [
            dict(
                type='mmpe.PEG',
                bias=False,
                norm_cfg=dict(type='BN'),
                act_cfg=dict(type='ReLU'))
        ]
        model = self.model(
            c,
            items,
            memory_positional_encoding=(given(tokens([c['pos']]))
                                        if keys == 'sine' else None))
        peg = model.positional_encoding.peg.blocks[0][0]
        peg.conv.load_state_dict(dict(weight=c['peg_weight']))
        peg.norm.load_state_dict(
            {k[7:]: v
             for k, v in c.items() if k.startswith('peg_bn_')},
            strict=False)
        self.check(c, model, 'peg0__memory', f'peg0__hs_deckey_{keys}')


@pytest.mark.parametrize('name', cases('pe/deformable_transformer'))
@pytest.mark.parametrize('encoding', ['sine', 'levelonly', 'nope'])
def test_deformable_detr(name, encoding):
    c = case('pe/deformable_transformer', name)
    levels = range(c['num_levels'])
    items = given(tokens([c[f'pos{i}'] for i in levels]))
    dims = c['src0'].shape[1]
    cfg = small_cfg(
        'deformable',
        dims=dims,
        heads=c['num_heads'],
        layers=c['num_layers'],
        num_levels=c['num_levels'],
        num_queries=len(c['query_embed']),
        positional_encoding=items if encoding == 'sine' else [])
    cfg.encoder.layer_cfg.self_attn_cfg.num_points = c['num_points']
    cfg.decoder.layer_cfg.cross_attn_cfg.num_points = c['num_points']
    model = build(cfg)
    weights = official(c, 'transformer.')
    weights['query_embed.weight'] = c['query_embed']
    load_official(model, weights, 'deformable-detr', OTHERS)
    if encoding == 'nope':
        torch.nn.init.zeros_(model.level_embed)
    maps = tuple(c[f'src{i}'] for i in levels)
    _, states = run(model, maps, c['mask0'])
    assert_close(states, c[f'{encoding}__hs'], **TOLERANCE)
    if encoding == 'sine':
        points = model.reference_points_fc(
            model.query_embedding.weight[:, :dims]).sigmoid()
        points = points.expand_as(c['sine__init_ref'])
        assert_close(points, c['sine__init_ref'], **TOLERANCE)
