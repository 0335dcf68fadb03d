"""Which checkpoint --resume takes, and which seed."""
import pytest
import torch
from mmengine.config import Config

from mmpe.engine.resume import find_last_whole, resume
from mmpe.engine.usage_error import UsageError


@pytest.fixture
def work_dir(tmp_path):
    """Of a run that has saved three epochs."""
    for epoch in (2, 9, 10):
        torch.save(
            dict(meta=dict(epoch=epoch, seed=5), state_dict=dict()),
            tmp_path / f'epoch_{epoch}.pth')
    (tmp_path / 'best_mAP_epoch_11.pth').touch()
    (tmp_path / 'last_checkpoint').write_text(str(tmp_path / 'epoch_10.pth'))
    return tmp_path


def cut(path):
    path.write_bytes(path.read_bytes()[:-100])


def make_cfg(work_dir, **kwargs):
    return Config(dict(work_dir=str(work_dir), load_from='zoo.pth', **kwargs))


def test_last_one(work_dir, capsys):
    cfg = make_cfg(work_dir)
    resume(cfg, 'auto')
    # Not its name: the config that stays in the work dir finds a later one.
    assert cfg.resume and cfg.load_from is None
    assert cfg.randomness == dict(seed=5)
    assert capsys.readouterr().out == ''


def test_last_one_is_cut_off(work_dir, capsys):
    cut(work_dir / 'epoch_10.pth')
    cfg = make_cfg(work_dir)
    resume(cfg, 'auto')
    assert cfg.resume and cfg.load_from == str(work_dir / 'epoch_9.pth')
    line, = capsys.readouterr().out.splitlines()
    assert 'epoch_10.pth' in line and 'epoch_9.pth' in line


def test_work_dir_has_moved(work_dir, tmp_path_factory):
    new = tmp_path_factory.mktemp('new') / 'place'
    work_dir.rename(new)
    assert find_last_whole(str(new)) == str(new / 'epoch_10.pth')


@pytest.mark.parametrize('text', [None, ''])
def test_no_name(work_dir, text, capsys):
    (work_dir / 'last_checkpoint').unlink()
    if text is not None:
        (work_dir / 'last_checkpoint').write_text(text)
    assert find_last_whole(str(work_dir)) == str(work_dir / 'epoch_10.pth')
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_none_is_whole(work_dir):
    for path in work_dir.glob('epoch_*.pth'):
        cut(path)
    with pytest.raises(UsageError, match='epoch_10.pth'):
        resume(make_cfg(work_dir), 'auto')


def test_first_start(tmp_path):
    cfg = make_cfg(tmp_path / 'not there yet')
    resume(cfg, 'auto')
    assert cfg.load_from == 'zoo.pth' and 'resume' not in cfg


def test_checkpoint_of_the_user(work_dir):
    cfg = make_cfg('elsewhere')
    resume(cfg, str(work_dir / 'epoch_2.pth'))
    assert cfg.resume and cfg.load_from == str(work_dir / 'epoch_2.pth')
    assert cfg.randomness.seed == 5


def test_another_seed(work_dir, capsys):
    """mmengine restores the checkpoint's too, but not for the sampler."""
    cfg = make_cfg(work_dir, randomness=dict(seed=6, deterministic=True))
    resume(cfg, 'auto')
    assert cfg.randomness == dict(seed=5, deterministic=True)
    assert '5, and not 6' in capsys.readouterr().out
