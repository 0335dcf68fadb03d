"""What tests of imports share: the tool, called as a program."""
import json
import runpy
import sys
from pathlib import Path

import pytest
import torch
from models import build, small_cfg

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))
PIPELINE = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(96, 64), keep_ratio=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape',
                   'scale_factor')),
]


@pytest.fixture
def tool(tmp_path, capsys, monkeypatch):
    """Runs the tool on a config and a source; returns its report."""

    def call(config, source, *options, out='out.pth'):
        monkeypatch.setattr(sys, 'argv', [
            'import_checkpoint.py', str(config), str(source),
            str(tmp_path / out), '--json', *map(str, options)
        ])
        runpy.run_path(str(ROOT / 'tools/import_checkpoint.py'),
                       run_name='__main__')
        return json.loads(capsys.readouterr().out)

    return call


@pytest.fixture
def refused(tool, capsys):
    """Runs the tool, which must end with one line; returns the line."""

    def call(*args, **kwargs):
        with pytest.raises(SystemExit) as status:
            tool(*args, **kwargs)
        assert status.value.code == 2
        line = capsys.readouterr().err.splitlines()[-1]
        assert line.startswith('import_checkpoint.py: error: ')
        return line

    return call


@pytest.fixture
def write_config(tmp_path):
    """Writes a config of a small detector; returns its path."""

    def write(items=None, kind='detr', name='config.py', **overrides):
        if items is not None:
            overrides['positional_encoding'] = items
        model = small_cfg(kind, **overrides)
        model.type = f'mmpe.{model.type}'
        dataset = dict(type='CocoDataset', pipeline=PIPELINE)
        (tmp_path / name).write_text(
            f'model = {model.to_dict()!r}\ndefault_scope = "mmdet"\n'
            f'test_dataloader = dict(dataset={dataset!r})\n')
        return tmp_path / name

    return write


@pytest.fixture
def zoo(tmp_path):
    """A small checkpoint of MMDetection's DETR, and the detector."""
    model = build(small_cfg('detr'), scope='mmdet').eval()
    path = tmp_path / 'zoo.pth'
    torch.save(dict(state_dict=model.state_dict(), meta={}), path)
    return path, model
