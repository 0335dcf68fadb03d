"""The benchmark's table and file are well-formed."""
import json
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
TINY = str(Path(__file__).with_name('tiny_detr.py'))
sys.path.insert(0, str(ROOT / 'tools'))

import benchmark  # noqa: E402
import benchmark_attention  # noqa: E402
import benchmark_backbone  # noqa: E402
from benchmark_steps import (build_model, random_batch,  # noqa: E402
                             read_config)
from mmpe.engine.command_line import UsageError  # noqa: E402


def bench(monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', [
        'benchmark.py', *arguments, '--size', '64', '96', '--repeats', '1',
        '--warmup', '0', '--device', 'cpu'
    ])
    benchmark.main()


@pytest.mark.parametrize('part', ['model', 'encoder'])
@pytest.mark.parametrize('mode', ['forward', 'train'])
def test_table_and_json(part, mode, tmp_path, monkeypatch, capsys):
    path = tmp_path / 'times.json'
    bench(monkeypatch, TINY, TINY, '--padded', '--part', part, '--mode', mode,
          '--json', str(path))
    header, first, second = [
        line for line in capsys.readouterr().out.splitlines()
        if line.startswith(('variant', 'tiny_detr'))
    ]
    assert header.split()[:2] == ['variant', 'parameters']
    assert first.startswith('tiny_detr ') and ' 1.000 ' in first
    assert second.startswith('tiny_detr (2) ')
    assert len(header) == len(first) == len(second)

    result = json.loads(path.read_text())
    assert result['settings']['part'] == part
    assert result['environment']['device'] == 'cpu'
    for variant in result['variants']:
        assert variant['peak_bytes'] > 0
        assert len(variant['seconds']) == 1 and variant['seconds'][0] > 0


def test_padded_images_have_masks():
    args = Namespace(
        size=[128, 160], batch=2, padded=True, dropout=None, device='cpu')
    model = build_model(read_config(TINY), args)
    data = model.data_preprocessor(random_batch(args), True)
    encoder_inputs, _ = model.pre_transformer(
        model.extract_feat(data['inputs']), data['data_samples'])
    assert encoder_inputs['feat_mask'].any(1).all()


def test_dropout_replaces_only_what_the_config_has(monkeypatch):
    cfg = read_config('mmdet::detr/detr_r50_8xb2-150e_coco.py')
    assert cfg.model.backbone.init_cfg is None
    cfg.model.encoder.num_layers = cfg.model.decoder.num_layers = 1
    args = Namespace(dropout=0.25, device='cpu')
    layer = build_model(cfg, args).encoder.layers[0]
    assert layer.self_attn.attn.dropout == 0.25
    assert layer.self_attn.dropout_layer.p == 0.25
    assert layer.self_attn.proj_drop.p == 0


@pytest.mark.parametrize('arguments, message', [
    (['no.py'], 'no.py'),
    (['mmdet::detr/no.py'], 'mmdet::detr/no.py'),
    ([TINY, '--padded', '--batch', '1'], '--padded'),
    ([TINY, '--batch', '0'], 'positive'),
    ([TINY, '--json', 'nowhere/times.json'], 'nowhere'),
])
def test_bad_input_is_named_before_work_starts(arguments, message,
                                               monkeypatch):
    with pytest.raises(UsageError, match=message):
        bench(monkeypatch, *arguments)


def bench_attention(monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', [
        'benchmark_attention.py', *arguments, '--repeats', '1', '--warmup',
        '0', '--device', 'cpu', '--heads', '2', '--dim', '4'
    ])
    benchmark_attention.main()


@pytest.mark.parametrize('mode', ['forward', 'train'])
def test_attention_alone(mode, tmp_path, monkeypatch, capsys):
    picture, path = tmp_path / 'a.png', tmp_path / 'a.json'
    bench_attention(monkeypatch, 'rpe-2.0-product-ctx-1-k',
                    'rpe-2.0-cross-ctx-1-qkv', '--naive', '--mode', mode,
                    '--grids', '3x4', '23x24', '--plot', str(picture),
                    '--json', str(path))
    rows = [line for line in capsys.readouterr().out.splitlines()
            if line.startswith(('3x4', '23x24'))]
    # Fused; the first in three forms, the second in two.
    assert len(rows) == 2 * (1 + 3 + 2)
    assert picture.read_bytes().startswith(b'\x89PNG')
    results = json.loads(path.read_text())['results']
    assert {r['grid'] for r in results} == {'3x4', '23x24'}
    assert all(r['peak_bytes'] > 0 for r in results)


def test_naive_forms_are_the_same_function():
    args = Namespace(
        flags=['rpe-2.0-product-ctx-1-k'], heads=2, dim=4, batch=2,
        dropout=0., naive=True, device='cpu')
    torch.manual_seed(0)
    functions = benchmark_attention.variants((4, 5), args)
    names = list(functions)
    inputs = torch.randn(3, 2, 2, 20, 4)
    # Each form draws the tables anew only for another flag.
    outputs = [functions[name](*inputs) for name in names[1:]]
    assert len(outputs) == 3
    for out in outputs[1:]:
        torch.testing.assert_close(out, outputs[0])


@pytest.mark.parametrize('arguments, message', [
    (['rpe-2.0-product-ctx-1-w'], 'TARGET letters of qkv'),
    (['--grids', '3x0'], '3x0'),
    (['--plot', 'nowhere/a.png'], 'nowhere'),
])
def test_bad_input_of_attention(arguments, message, monkeypatch):
    with pytest.raises(UsageError, match=message):
        bench_attention(monkeypatch, *arguments)


def bench_backbone(monkeypatch, *arguments):
    monkeypatch.setattr(sys, 'argv', [
        'benchmark_backbone.py', *arguments, '--repeats', '1', '--warmup',
        '0', '--batch', '1', '--size', '32', '--device', 'cpu'
    ])
    benchmark_backbone.main()


@pytest.mark.parametrize('mode', ['forward', 'train'])
def test_backbones(mode, tmp_path, monkeypatch, capsys):
    path = tmp_path / 'b.json'
    bench_backbone(monkeypatch, 'deit-tiny:PositionEmbedding', 'deit-tiny:PEG',
                   '--mode', mode, '--json', str(path))
    assert 'deit-tiny:PEG' in capsys.readouterr().out
    plain, peg = json.loads(path.read_text())['results']
    # A table of 2x2 cells and a class token against a convolution.
    assert plain['parameters'] - peg['parameters'] == 192 * (5 - 10)


@pytest.mark.parametrize('arguments, message', [
    (['deit-huge:PEG'], 'deit-huge'),
    (['cpvt-tiny'], 'ARCH:ENCODING'),
    (['deit-tiny:PEGG'], 'Did you mean mmpe.PEG'),
    (['mmpretrain:deit-tiny'], 'mmpretrain'),
])
def test_bad_input_of_backbones(arguments, message, monkeypatch):
    if arguments == ['mmpretrain:deit-tiny']:  # as where it isn't installed
        monkeypatch.setitem(sys.modules, 'mmpretrain.models', None)
    with pytest.raises(UsageError, match=message):
        bench_backbone(monkeypatch, *arguments)
