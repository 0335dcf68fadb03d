"""Files that the importing tool is given, and the one that it writes."""
import io
import os
from argparse import Namespace

import pytest
import torch
from mmengine.logging import HistoryBuffer


class Evil:
    """Leaves a trace when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path, )


def test_nothing_in_a_file_is_run(refused, tool, write_config, zoo, tmp_path):
    path, model = zoo
    trace = tmp_path / 'trace'
    torch.save(dict(state_dict=model.state_dict(), meta=Evil(str(trace))),
               path)
    line = refused(write_config(), path)
    assert 'mkdir' in line and '--trust' in line
    assert not trace.exists()
    assert not (tmp_path / 'out.pth').exists()
    tool(write_config(), path, '--trust')
    assert trace.exists()


def test_harmless_classes_are_loaded(tool, write_config, zoo):
    path, model = zoo
    history = HistoryBuffer([1.0], [1])
    torch.save(
        dict(
            state_dict=model.state_dict(),
            message_hub=dict(log_scalars=dict(loss=history)),
            args=Namespace(lr=1e-4)), path)
    assert tool(write_config(), path)['same_function']


def _content(model):
    buffer = io.BytesIO()
    torch.save(dict(state_dict=model.state_dict()), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize('spoil, said', [
    (lambda whole: whole[:len(whole) // 2], 'is cut off'),
    (lambda whole: b'', 'is empty'),
    (lambda whole: b'PK\x03\x04 but no zip', 'is cut off'),
    (lambda whole: b'<html>404</html>', 'no checkpoint'),
])
def test_broken_files(refused, write_config, zoo, spoil, said):
    path, model = zoo
    path.write_bytes(spoil(_content(model)))
    line = refused(write_config(), path)
    assert said in line and str(path) in line


@pytest.mark.parametrize('content, said', [
    (dict(epoch=1), "holds no weights, but keys 'epoch'"),
    ([torch.zeros(2)], 'holds no weights, but list'),
    (dict(model=dict(a=torch.zeros(2))), 'is of no family'),
    (dict(model={'class_embed.weight': torch.zeros(2),
                 'query_embed.weight': torch.zeros(2),
                 'transformer.decoder.norm.weight': torch.zeros(2)}),
     'would be of the family detr, but has no transformer.encoder'),
    (dict(state_dict={'query_embedding.weight': torch.zeros(7, 7)}),
     'is of another model'),
])
def test_other_content(refused, write_config, tmp_path, content, said):
    torch.save(content, tmp_path / 'in.pth')
    assert said in refused(write_config(), tmp_path / 'in.pth')


def test_family_can_be_told(refused, tool, write_config, zoo):
    config = write_config()
    assert 'Did you mean lape?' in refused(config, zoo[0], '--source', 'lappe')
    line = refused(config, zoo[0], '--source', 'deit')
    assert 'is not of the family deit' in line and 'patch_embed' in line
    tool(config, zoo[0], '--source', 'openmmlab')


def test_out_is_whole_or_as_it_was(refused, tool, write_config, zoo,
                                   tmp_path, monkeypatch):
    config, out = write_config(), tmp_path / 'out.pth'
    out.write_text('mine')
    assert '--force' in refused(config, zoo[0])
    assert out.read_text() == 'mine'

    def full(checkpoint, part):
        part.write_bytes(b'half of it')
        raise OSError(28, 'No space left on device')

    with monkeypatch.context() as patch:
        patch.setattr(torch, 'save', full)
        assert 'No space left' in refused(config, zoo[0], '--force')
    assert out.read_text() == 'mine'
    assert list(tmp_path.glob('*.part')) == []
    tool(config, zoo[0], '--force')
    assert 'state_dict' in torch.load(out)
    assert 'no such folder' in refused(config, zoo[0], out='nowhere/out.pth')
