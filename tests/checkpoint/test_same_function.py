"""Imports that a reviewer found called the source's function and weren't; and
the other way round."""
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import init_default_scope

from mmpe.checkpoint import Source, build_model, import_checkpoint
from mmpe.checkpoint.same_function import _against_host as reasons_of_host

SINE = dict(type='mmpe.SinePositionalEncoding', normalize=True)
RPE = dict(type='mmpe.ImageRPE')
TABLE = dict(type='mmpe.PositionEmbedding')
ARCH = dict(embed_dims=8, num_layers=2, num_heads=2, feedforward_channels=16)


def vit(**kwargs):
    return dict(type='mmpe.VisionTransformer', arch=ARCH, img_size=16,
                patch_size=4, **kwargs)


def pegs(*positions):
    return vit(positional_encoding=[
        dict(type='mmpe.PEG', positions=[p]) for p in positions])


def rpe(**kwargs):
    return vit(positional_encoding=[TABLE, dict(RPE, **kwargs)])


@pytest.fixture
def report(tmp_path):
    """Imports a model of one config, which the file has, into another's."""

    def call(source, target, knows_config=True):
        init_default_scope('mmdet')
        theirs = build_model(Config(dict(model=source)))
        path = tmp_path / 'in.pth'
        meta = dict(cfg=f'model = {source!r}') if knows_config else {}
        torch.save(dict(state_dict=theirs.state_dict(), meta=meta), path)
        cfg = Config(dict(model=target))
        return import_checkpoint(cfg, Source(path))[1]

    return call


@pytest.mark.parametrize('source, target', [
    (vit(), vit(positional_encoding=[])),  # the default is an encoding
    (vit(), vit(positional_encoding=[RPE])),
    (pegs(0, 1), pegs(1, 0)),  # peg and peg2 change places
    (rpe(), rpe(index='clip')),
    (rpe(), rpe(ratio=2.2)),
    (rpe(method='quant'), rpe(method='quant', quantize='rank')),
    (vit(positional_encoding=[TABLE, SINE]), vit()),
    (vit(), vit(join='query_key')),
])
def test_another_function(report, source, target):
    assert not report(source, target).is_same_function


@pytest.mark.parametrize('source, target', [
    (vit(), vit(positional_encoding=[TABLE])),
    (vit(positional_encoding=[TABLE]), vit()),
    (vit(positional_encoding=[]), vit(positional_encoding=[])),
    (vit(), vit(positional_encoding=[TABLE, RPE])),
    (vit(), vit(positional_encoding=[RPE, TABLE])),
    (pegs(0, 1), pegs(0, 1)),
    (rpe(index='clip'), rpe(index='clip')),
])
def test_the_same_function(report, source, target):
    found = report(source, target)
    assert found.is_same_function, found.reasons


@pytest.mark.parametrize('text', [
    "model = dict(positional_encoding=[dict(type='this.s')])",
    "model = dict(positional_encoding=[dict(type='Gradient')])",
    "model = dict(positional_encoding=[None])",
    "model = dict(backbone=None)",
    'model = {[]: 1}',
    'model = {1: dict(a=2)}',
    'model = ' + 'a.' * 900 + 'b',
    'model = ' + '-' * 100_000 + '1',
    'model = ' + 'dict(a=' * 90 + '1' + ')' * 90,
])
def test_config_of_a_file_is_never_looked_up(tmp_path, text, capsys):
    """It would import whatever module a file names."""
    cfg = Config(dict(model=vit()))
    model = build_model(cfg)
    path = tmp_path / 'in.pth'
    torch.save(dict(state_dict=model.state_dict(), meta=dict(cfg=text)), path)
    found = import_checkpoint(cfg, Source(path))[1]
    assert not found.is_same_function
    assert 'Zen of Python' not in capsys.readouterr().out


def test_numbers_that_are_not_finite(report, tmp_path):
    cfg = Config(dict(model=vit()))
    state = build_model(cfg).state_dict()
    state['cls_token'][0, 0, 0] = float('nan')
    torch.save(dict(state_dict=state, best=torch.tensor(0.5)),
               tmp_path / 'in.pth')
    found = import_checkpoint(cfg, Source(tmp_path / 'in.pth'))[1]
    assert 'cls_token has numbers that are not finite' in found.reasons


@pytest.mark.parametrize('path', [
    'detr/detr_r50_sine_16xb4-500e_coco.py',
    'deformable_detr/deformable-detr_r50_sine_16xb2-50e_coco.py'
])
@pytest.mark.parametrize('key, value', [
    ('encoder.layer_cfg.self_attn_cfg.num_heads', 4),
    ('encoder.layer_cfg.ffn_cfg.act_cfg.type', 'GELU'),
    ('neck.act_cfg', dict(type='ReLU')),
    ('data_preprocessor.mean', [0., 0., 0.]),
])
def test_what_files_do_not_show_is_as_published(path, key, value):
    cfg = Config.fromfile(f'configs/{path}')
    assert reasons_of_host(cfg.model) == []
    *words, last = key.split('.')
    part = cfg.model
    for word in words:
        if word not in part:
            part[word] = {}
        part = part[word]
    part[last] = value
    reason, = reasons_of_host(cfg.model)
    assert key in reason
