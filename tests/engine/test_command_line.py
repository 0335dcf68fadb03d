"""What is typed, and what is said when it is wrong."""
import os
import sys

import pytest
from mmengine.registry import DefaultScope

from mmpe.engine.command_line import (UsageError, load_config, make_parser,
                                      run)


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    monkeypatch.setenv('LOCAL_RANK', '0')
    monkeypatch.delenv('LOCAL_RANK')


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / 'my detr.py'
    path.write_text('items = [dict(a=1)]\nlr = 0.1\n')
    return str(path)


def load(*argv):
    return load_config(make_parser('').parse_args(argv))


def test_work_dir_is_named_after_the_config(config):
    assert load(config).work_dir == os.path.join('work_dirs', 'my detr')


def test_work_dir_of_the_config_and_of_the_command_line(config):
    option = ('--cfg-options', 'work_dir=here')
    assert load(config, *option).work_dir == 'here'
    assert load(config, *option, '--work-dir', 'there').work_dir == 'there'


def test_options_reach_into_lists(config):
    cfg = load(config, '--cfg-options', 'items.0.a=2', 'lr=1e-3')
    assert cfg['items'] == [dict(a=2)]
    assert cfg.lr == 1e-3


def test_types_without_a_prefix_are_mmdetections(config):
    assert load(config).default_scope == 'mmdet'
    assert DefaultScope.get_current_instance().scope_name == 'mmdet'


@pytest.mark.parametrize('flag', ['--local_rank', '--local-rank'])
def test_rank_of_old_launchers(config, flag):
    load(config, f'{flag}=1')
    assert os.environ['LOCAL_RANK'] == '1'


@pytest.mark.parametrize('argv, said', [
    (['nowhere.py'], 'nowhere.py'),
    (['my detr.py', '--cfg-options', 'lr'], 'got: lr'),
    (['my detr.py', '--cfg-options', 'items.3.a=1'], 'length 1'),
    (['my detr.py', '--cfg-options', "items=[{'a':1,'b':[2,8]}]"], 'no dicts'),
    (['my detr.py', '--wrokdir', 'x'], '--wrokdir'),
    (['my detr.py', '--launcher', 'pytroch'], 'pytroch'),
])
def test_what_is_wrong_is_said_in_one_line(config, argv, said):
    with pytest.raises(UsageError) as error:
        load(*argv)
    assert said in str(error.value)
    assert '\n' not in str(error.value)


@pytest.mark.filterwarnings('ignore:Unable to enable fault handler')
def test_usage_error_ends_a_program_with_status_2(capsys, monkeypatch):
    monkeypatch.setattr(sys, 'argv', ['/some/train.py'])

    def main():
        raise UsageError('it cannot be')

    with pytest.raises(SystemExit) as end:
        run(main)
    assert end.value.code == 2
    assert capsys.readouterr().err == 'train.py: error: it cannot be\n'
