"""Configs as data."""
import pytest
from mmengine.config import Config

from mmpe.engine.config_text import differences, read_config_text


def test_what_mmengine_writes_is_read():
    cfg = Config.fromfile('configs/quickstart/'
                          'deformable-detr_r18_lape_coco16.py')
    read = read_config_text(cfg.pretty_text)
    assert list(differences(read, cfg.to_dict())) == []
    assert read['model']['type'] == 'mmpe.DeformableDETR'


def test_nothing_is_run(tmp_path):
    trace = tmp_path / 'trace'
    read = read_config_text(f'import os\na = open({str(trace)!r}, "w")\n'
                            'b = dict(c=1, d=float("inf"))\nb.c = 2')
    assert not trace.exists()
    assert read['b'] == dict(c=1, d="float('inf')")


@pytest.mark.parametrize('text', ['not python (', '\0', '[' * 10_000])
def test_no_python_is_nothing(text):
    assert read_config_text(text) == {}


def test_differences():
    a = dict(x=dict(y=[1, dict(z=2)], same=(1, 2)), gone=1)
    b = dict(x=dict(y=[1, dict(z=3)], same=[1, 2]), new=None, more=[1])
    assert list(differences(a, b)) == [('gone', 1, ...), ('more', ..., [1]),
                                       ('new', ..., None), ('x.y.1.z', 2, 3)]
    assert list(differences(dict(a=[1]), dict(a=[1, 2]))) == [('a', [1],
                                                              [1, 2])]
