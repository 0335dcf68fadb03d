"""What is wrong with a config is one line, and no more than that is hidden."""
from pathlib import Path

import pytest
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS

from mmpe.engine.check_config import config_errors
from mmpe.engine.command_line import load_config, make_parser
from mmpe.engine.runner import build_runner
from mmpe.engine.usage_error import UsageError

TINY = Path(__file__).parents[1] / 'tools' / 'tiny_detr.py'
BASE = f'_base_ = {str(TINY)!r}\n'
PEG = 'mmpe.PEG'


def message(function, *args):
    with pytest.raises(UsageError) as error:
        function(*args)
    assert '\n' not in str(error.value)
    return str(error.value)


@pytest.fixture
def read(tmp_path, monkeypatch):
    monkeypatch.setenv('LOCAL_RANK', '0')

    def load(text, *options):
        path = tmp_path / 'mine.py'
        path.write_text(text)
        options = ('--cfg-options', *options) if options else ()
        return load_config(make_parser('').parse_args([str(path), *options]))

    return load


@pytest.mark.parametrize('text, said', [
    ('a = 1\nb = (\n', "'(' was never closed, line 2"),
    ('a = 1\nb = a + c\n', "mine.py, line 2: NameError: name 'c'"),
    ("_base_ = 'mmdet::detr/detr_r50_8xb2-150e_coc.py'",
     'Did you mean detr_r50_8xb2-150e_coco.py?'),
    ("_base_ = './mien.py'", 'mien.py. Did you mean mine.py?'),
    ("_base_ = 'mmdett::detr/detr_r50_8xb2-150e_coco.py'", 'mmdett'),
    ("custom_imports = dict(imports=['no_module'])", 'no_module'),
    (BASE + "model = dict(positional_encoding=dict(type='mmpe.PEG'))",
     'write a list'),
    (BASE + 'x = {{ _base_.no_such_key }}',
     "no key 'no_such_key'"),
])
def test_config_that_cannot_be_read(read, text, said):
    line = message(read, text)
    assert said in line
    assert 'mine.py' in line


def test_options_reach_into_the_list(read):
    cfg = read(BASE, 'model.positional_encoding.0.temperature=20',
               'optim_wrapper.clip_grad.max_norm=0.1')
    assert cfg.model.positional_encoding[0].temperature == 20
    assert cfg.model.positional_encoding[1].type == PEG


@pytest.mark.parametrize('option, said', [
    ('model.positional_encoding.2.ratio', 'is a list of length 2'),
    ('model.positional_encoding.-1.ratio', 'is a list of length 2'),
    ('model.positional_encoding.ratio', 'is a list of length 2'),
    ('model.positional_encodin.0.ratio', 'Did you mean positional_encoding?'),
    ('modle.positional_encoding.0.ratio', 'Did you mean model?'),
    ('model.num_queries.ratio', 'model.num_queries is 20'),
    ('model.neck.0.ratio', 'model.neck is no list but has the keys type'),
])
def test_options_that_lead_nowhere(read, option, said):
    line = message(read, BASE, f'{option}=2.5')
    assert said in line
    assert option in line


def config(tmp_path, **model):
    """The tiny model's config, ``model`` merged into its model."""
    cfg = Config.fromfile(TINY)
    cfg.merge_from_dict(dict(work_dir=str(tmp_path), log_level='ERROR'))
    cfg.model.update(ConfigDict(**model))
    cfg.launcher = 'none'
    return cfg


@pytest.mark.parametrize('model, said', [
    (dict(positional_encoding=[dict(type='mmpe.PEGG')]),
     'Did you mean mmpe.PEG?'),
    (dict(positional_encoding=[dict(type=PEG, kernel=3)]), "'kernel'"),
    (dict(positional_encoding=dict(num_feats=16, type=PEG)), 'write a list'),
    (dict(positional_encoding=[dict(type=PEG, positions=(1, ))]), 'positions'),
    (dict(positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', num_feats=128)
    ]), 'num_feats=128'),
    (dict(positional_encoding=[
        dict(type='mmpe.LearnedPositionalEncoding', num_feats=128)
    ]), 'num_feats=128'),
    (dict(positional_encoding='sine'), "got 'sine'"),
    (dict(memory_positional_encoding='other'), "got 'other'"),
    (dict(type='mmpe.DERT'), 'Did you mean mmpe.DETR?'),
    (dict(type='mmpe.YOLO'), 'It has mmpe.DETR, mmpe.DeformableDETR'),
    (dict(type='DETR'), "model.type='DETR' takes no list"),
    (dict(neck=dict(type='ChannelMaper')), 'Did you mean ChannelMapper?'),
    (dict(num_querys=3), 'num_querys'),
    (dict(encoder=dict(num_layer=3)), 'num_layer'),
])
def test_model_that_cannot_be_built(tmp_path, monkeypatch, model, said):
    # The runner formats it before it builds the model: half a second each.
    monkeypatch.setattr(Config, 'pretty_text', '')
    cfg = config(tmp_path, **model)
    line = message(build_runner, cfg)
    assert said in line
    assert str(TINY) in line
    assert not list(tmp_path.glob('*.py'))  # no config was left to run again


def test_errors_of_other_code_keep_their_traceback(tmp_path):

    @MODELS.register_module(force=True)
    def my_own_backbone():
        raise ValueError('of my own')

    cfg = config(tmp_path)
    cfg.model.backbone = ConfigDict(type='mmengine.my_own_backbone')
    with pytest.raises(ValueError, match='of my own'):
        build_runner(cfg)


def test_config_that_a_run_leaves_is_the_same_again(tmp_path):
    cfg = config(tmp_path)
    cfg.model.positional_encoding[1].positions = (-1, 0)
    cfg.dump(tmp_path / 'left.py')
    again = Config.fromfile(tmp_path / 'left.py')
    assert again.pretty_text == cfg.pretty_text


def test_a_detector_of_the_users_own_may_take_a_list(read):
    from mmpe.detectors import DETR

    @MODELS.register_module(force=True)
    class MyDETR(DETR):
        pass

    cfg = read(BASE + "model = dict(type='MyDETR', positional_encoding=[])")
    with config_errors(cfg):
        pass
