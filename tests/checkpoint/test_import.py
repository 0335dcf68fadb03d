"""The tool that imports checkpoints, as people use it."""
import copy

import pytest
import torch
from mmdet.apis import init_detector
from mmengine.runner import load_checkpoint
from models import build, move_parameters, samples, small_cfg
from official import detr_weights
from torch.testing import assert_close

from mmpe.position import PositionEmbedding

SINE = dict(type='mmpe.SinePositionalEncoding', normalize=True)
IRPE = dict(type='mmpe.ImageRPE')
PEG = dict(type='mmpe.PEG')
TABLE = dict(type='mmpe.PositionEmbedding', grid=(4, 4))
IMAGE = 'tests/data/coco_sample/images/000000005001.jpg'


def outputs(model):
    """Of a padded batch."""
    torch.manual_seed(0)
    batch = samples([(64, 96), (48, 64)], (64, 96))
    with torch.no_grad():
        return model.eval()(torch.randn(2, 3, 64, 96), batch, mode='tensor')


def loaded(config, path):
    """The detector of a config as MMDetection's own API loads it, which
    knows nothing of what mmpe allows."""
    return init_detector(str(config), str(path), device='cpu')


@pytest.mark.parametrize('items', [None, [SINE], [SINE, IRPE]])
def test_mmdetection_stays_the_function_it_was(tool, write_config, zoo,
                                               tmp_path, items):
    path, source = zoo
    config = write_config(items)
    report = tool(config, path, '--strict', '--check', IMAGE)
    assert report['same_function'], report['reasons']
    assert report['check']['agrees']
    assert report['check']['source_model'] == 'mmdet.DETR'
    new = 2 if items and IRPE in items else 0
    assert report['totals']['initialised']['tensors'] == new
    assert report['totals']['loaded']['tensors'] == len(source.state_dict())
    model = loaded(config, tmp_path / 'out.pth')
    for a, b in zip(outputs(model), outputs(source)):
        assert_close(a, b, rtol=1e-5, atol=1e-5)
    assert model.dataset_meta['classes'][0] == 'person'


@pytest.mark.parametrize('items, why', [
    ([PEG], 'PEG is new'),
    ([], 'CONFIG has no mmpe.SinePositionalEncoding'),
    ([dict(SINE, offset=-0.5)], 'SinePositionalEncoding is new'),
    ([SINE, dict(IRPE, init='xavier')], 'ImageRPE is new'),
    ([SINE, dict(type='mmpe.AxialDeepLabRPE')], 'AxialDeepLabRPE is new'),
])
def test_another_function_is_said_to_be_one(tool, write_config, zoo, items,
                                            why):
    report = tool(write_config(items), zoo[0], '--strict')
    assert not report['same_function']
    assert why in ' '.join(report['reasons'])
    assert 'another function' in report['verdict']


def test_check_measures_what_is_not_claimed(tool, write_config, zoo):
    report = tool(write_config([SINE, PEG]), zoo[0], '--check', IMAGE)
    assert not report['check']['agrees']
    assert report['check']['difference'] > 1e-3


def test_check_finds_a_wrong_claim(refused, write_config, zoo, monkeypatch):
    monkeypatch.setattr('mmpe.checkpoint.importing.reasons_against',
                        lambda *args: [])
    line = refused(write_config([SINE, PEG]), zoo[0], '--check', IMAGE)
    assert 'should start as the function of its source' in line


def test_official_detr(tool, write_config, tmp_path):
    source = build(small_cfg('detr'), scope='mmdet')
    move_parameters(source)
    weights = detr_weights(source)
    path = tmp_path / 'detr-r50.pth'
    torch.save(dict(model=weights), path)
    config = write_config([SINE])
    report = tool(config, path, '--strict', '--check', IMAGE)
    assert report['family'].startswith('DETR')
    assert report['same_function'] and report['check']['agrees']
    model = loaded(config, tmp_path / 'out.pth')
    for a, b in zip(outputs(model), outputs(source)):
        assert_close(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('wrap', [
    lambda w: dict(model={f'module.{k}': v for k, v in w.items()}),
    lambda w: {f'module.model.{k}': v for k, v in w.items()},
    lambda w: {f'detr.{k}': v for k, v in w.items()},
    lambda w: dict(state_dict={f'_orig_mod.{k}': v for k, v in w.items()}),
    lambda w: dict(model_ema=w, epoch=3),
    lambda w: dict(model=w, model_ema={k: v + 1 for k, v in w.items()}),
    lambda w: {
        **{f'ema_model.{k}': v + 1 for k, v in w.items()},
        **{f'model.{k}': v for k, v in w.items()}
    },
])
def test_wrappers(tool, write_config, tmp_path, wrap):
    weights = detr_weights(build(small_cfg('detr'), scope='mmdet'))
    torch.save(wrap(weights), tmp_path / 'in.pth')
    report = tool(write_config([SINE]), tmp_path / 'in.pth', '--strict')
    state = torch.load(tmp_path / 'out.pth')['state_dict']
    assert_close(state['query_embedding.weight'],
                 weights['query_embed.weight'])
    assert report['same_function']


def test_strict_names_what_is_not_loaded(refused, tool, write_config, zoo,
                                         tmp_path):
    path, model = zoo
    state = model.state_dict()
    state['encoder.layers.0.norms.0.scale'] = state.pop(
        'encoder.layers.0.norms.0.weight')
    torch.save(dict(state_dict=state), path)
    line = refused(write_config(), path, '--strict')
    assert 'encoder.layers.0.norms.0.scale' in line
    assert 'encoder.layers.0.norms.0.weight' in line
    assert not (tmp_path / 'out.pth').exists()
    report = tool(write_config(), path)
    assert 'incomplete' in report['verdict']
    by_status = {e['status']: e['name'] for e in report['entries']}
    assert by_status['initialised'] == 'encoder.layers.0.norms.0.weight'
    assert by_status['dropped'] == 'encoder.layers.0.norms.0.scale'


def test_other_classes_are_initialised(tool, write_config, zoo, tmp_path):
    head = small_cfg('detr').bbox_head
    config = write_config(bbox_head=dict(head, num_classes=3))
    report = tool(config, zoo[0])
    dropped = {e['name'] for e in report['entries']
               if e['status'] == 'dropped'}
    assert dropped == {'bbox_head.fc_cls.weight', 'bbox_head.fc_cls.bias'}
    load_checkpoint(
        build(small_cfg('detr', bbox_head=dict(head, num_classes=3))),
        str(tmp_path / 'out.pth'), strict=True)


@pytest.mark.parametrize('before, after', [((4, 4), (2, 3)), ((2, 8), (4, 4))])
def test_tables_are_resized_by_grid(tool, write_config, tmp_path, before,
                                    after):
    source = build(small_cfg(
        'detr', positional_encoding=[dict(TABLE, grid=before)]))
    torch.save(dict(state_dict=source.state_dict()), tmp_path / 'in.pth')
    config = write_config([dict(TABLE, grid=after)])
    report = tool(config, tmp_path / 'in.pth', '--strict')
    resized, = (e for e in report['entries'] if e['status'] == 'resized')
    assert resized['note'] == (
        'bicubic, from grid {}x{} to grid {}x{}'.format(*before, *after))
    table = source.positional_encoding.embedding.weight
    expected = torch.nn.functional.interpolate(
        table.permute(2, 0, 1)[None], after, mode='bicubic')[0]
    state = torch.load(tmp_path / 'out.pth')['state_dict']
    assert_close(state['positional_encoding.embedding.weight'],
                 expected.permute(1, 2, 0).detach())


def vit_weights(cells):
    """A tiny one with timm's names."""
    out = {
        'cls_token': torch.randn(1, 1, 8),
        'pos_embed': torch.randn(1, 1 + cells, 8),
        'patch_embed.proj.weight': torch.randn(8, 3, 4, 4),
        'patch_embed.proj.bias': torch.randn(8),
        'norm.weight': torch.ones(8),
        'norm.bias': torch.zeros(8)
    }
    for name, shape in {
            'norm1.weight': (8, ), 'norm1.bias': (8, ),
            'norm2.weight': (8, ), 'norm2.bias': (8, ),
            'attn.qkv.weight': (24, 8), 'attn.qkv.bias': (24, ),
            'attn.proj.weight': (8, 8), 'attn.proj.bias': (8, ),
            'mlp.fc1.weight': (16, 8), 'mlp.fc1.bias': (16, ),
            'mlp.fc2.weight': (8, 16), 'mlp.fc2.bias': (8, )}.items():
        out[f'blocks.0.{name}'] = torch.randn(shape)
    return out


@pytest.fixture
def vit_config(tmp_path):
    path = tmp_path / 'vit.py'
    path.write_text('''
default_scope = 'mmdet'
model = dict(
    type='mmpe.VisionTransformer', img_size=16, patch_size=4,
    arch=dict(embed_dims=8, num_layers=1, num_heads=2,
              feedforward_channels=16))
''')
    return path


@pytest.mark.parametrize('prefix', ['', 'backbone.', 'module.backbone.'])
def test_vision_transformer_by_itself(tool, vit_config, tmp_path, prefix):
    weights = vit_weights(16)
    torch.save({prefix + k: v for k, v in weights.items()},
               tmp_path / 'in.pth')
    report = tool(vit_config, tmp_path / 'in.pth', '--strict')
    assert report['same_function']
    state = torch.load(tmp_path / 'out.pth')['state_dict']
    flat = torch.cat([state['positional_encoding.embedding.prefix'],
                      state['positional_encoding.embedding.weight']
                      .flatten(0, 1)])
    assert_close(flat, weights['pos_embed'][0])


def test_grid_of_a_flat_table_can_be_told(tool, refused, vit_config,
                                          tmp_path):
    weights = vit_weights(16)
    torch.save(weights, tmp_path / 'in.pth')
    tool(vit_config, tmp_path / 'in.pth', '--source-grid', '2x8')
    state = torch.load(tmp_path / 'out.pth')['state_dict']
    source = PositionEmbedding(
        grid=(2, 8), embed_dims=8, num_heads=2, num_layers=1)
    expected = torch.nn.functional.interpolate(
        weights['pos_embed'][0, 1:].T.unflatten(1, (2, 8))[None], (4, 4),
        mode=source.interpolation)[0]
    assert_close(state['positional_encoding.embedding.weight'],
                 expected.permute(1, 2, 0))
    assert 'pos_embed' in refused(vit_config, tmp_path / 'in.pth',
                                  '--source-grid', '3x8', '--force')


@pytest.mark.parametrize('cells', [15, 17])
def test_flat_table_of_no_grid_is_named(refused, vit_config, tmp_path, cells):
    torch.save(vit_weights(cells + 2), tmp_path / 'in.pth')
    assert 'pos_embed' in refused(vit_config, tmp_path / 'in.pth')


def test_config_of_the_source_is_compared(tool, write_config, zoo):
    path, model = zoo
    text = f'model = {small_cfg("detr").to_dict()!r}\n'
    text += '__import__("os").mkdir("/nowhere/at/all")\n'
    torch.save(dict(state_dict=model.state_dict(), meta=dict(cfg=text)), path)
    report = tool(write_config(), path)
    assert report['same_function'] and report['assumed'] == []
    other = copy.deepcopy(small_cfg('detr'))
    other.encoder.layer_cfg.self_attn_cfg.num_heads = 4
    text = f'model = {other.to_dict()!r}\n'
    torch.save(dict(state_dict=model.state_dict(), meta=dict(cfg=text)), path)
    report = tool(write_config(), path, '--force')
    assert 'num_heads' in report['reasons'][0]


def test_what_was_imported_can_be_imported(tool, write_config, zoo, tmp_path):
    config = write_config([SINE, IRPE])
    tool(config, zoo[0])
    report = tool(config, tmp_path / 'out.pth', '--strict', out='again.pth')
    assert report['same_function'] and report['assumed'] == []
    assert report['totals']['initialised']['tensors'] == 0
    report = tool(
        write_config([SINE], name='other.py'), tmp_path / 'out.pth',
        out='third.pth')
    assert 'CONFIG has no mmpe.ImageRPE' in ' '.join(report['reasons'])


def test_report_as_text(write_config, zoo, tmp_path, monkeypatch, capsys):
    import runpy
    import sys
    monkeypatch.setattr(sys, 'argv', [
        'tool', str(write_config([SINE, PEG])), str(zoo[0]),
        str(tmp_path / 'out.pth')])
    runpy.run_path('tools/import_checkpoint.py', run_name='__main__')
    text = capsys.readouterr().out
    assert 'mmpe.PEG' in text and 'Verdict: ' in text
    assert text.splitlines()[-1] == f'Wrote {tmp_path / "out.pth"}'
