"""A training that is killed and resumed ends as if it had not been.

MMPE_KILLS is the number of random moments at which it is killed; 3 if unset.
"""
import os
import random
import signal
import time
from pathlib import Path

import forked_runs
import numpy as np
import pytest
import torch

from mmpe.engine import allow_checkpoint_classes

EVENTFUL = Path(__file__).with_name('eventful.py')
KILLS = int(os.environ.get('MMPE_KILLS', 3))
# What depends on the clock, the load, the name of the run or the last commit.
UNCOMPARED = ('time', 'eta', 'memory', 'experiment_name', 'cfg',
              'mmengine_version')


def differences(one, other, at=''):
    """Paths inside two nested structures at which they differ in any bit."""
    if at.rsplit('/', 1)[-1] in UNCOMPARED or at.endswith('time'):
        return []
    if isinstance(one, dict) and isinstance(other, dict):
        found = [f'{at}/{key}' for key in one.keys() ^ other.keys()]
        for key in one.keys() & other.keys():
            found += differences(one[key], other[key], f'{at}/{key}')
        return found
    if isinstance(one, (list, tuple)) and len(one) == len(other):
        return [
            path for i, pair in enumerate(zip(one, other))
            for path in differences(*pair, f'{at}/{i}')
        ]
    if hasattr(one, 'data') and isinstance(one.data, tuple):  # a history
        return differences(list(one.data), list(other.data), at)
    if isinstance(one, torch.Tensor):
        return [] if torch.equal(one, other) else [at]
    if isinstance(one, np.ndarray):
        return [] if np.array_equal(one, other, equal_nan=True) else [at]
    return [] if one == other or one != one and other != other else [at]


def load(path):
    allow_checkpoint_classes()
    return torch.load(path)


def train(work_dir, *options, resume=False):
    """Start it in two processes."""
    return forked_runs.start(
        2, f'{work_dir}.log', 'train.py', EVENTFUL, '--work-dir', work_dir,
        '--cfg-options', 'randomness.seed=7', *options,
        *['--resume'] * resume)


def resume(work_dir, *options):
    jobs = train(work_dir, *options, resume=True)
    return forked_runs.finish(jobs, f'{work_dir}.log')


@pytest.fixture(scope='module')
def uninterrupted(tmp_path_factory):
    work_dir = tmp_path_factory.mktemp('uninterrupted') / 'run'
    forked_runs.finish(train(work_dir), f'{work_dir}.log')
    return work_dir


def assert_same_end(work_dir, uninterrupted):
    names = sorted(path.name for path in uninterrupted.glob('*.p*t*'))
    assert names[1:] == ['epoch_3.pth', 'epoch_4.pth'], names
    assert sorted(path.name for path in work_dir.glob('*.p*t*')) == names
    assert Path((work_dir / 'last_checkpoint').read_text()).name == names[-1]
    for name in names:
        saved = [load(folder / name) for folder in (work_dir, uninterrupted)]
        for one, folder in zip(saved, (work_dir, uninterrupted)):
            info = one['message_hub']['runtime_info']
            for key in ('last_ckpt', 'best_ckpt'):
                if key in info:
                    info[key] = str(Path(info[key]).relative_to(folder))
        assert differences(*saved) == []


def kill(jobs):
    for job in jobs:
        os.kill(job.pid, signal.SIGKILL)
    for job in jobs:
        job.join()


def noted(notes):
    return notes.stat().st_size if notes.exists() else 0


def wait(jobs, until):
    while not until() and any(job.is_alive() for job in jobs):
        time.sleep(0.002)


@pytest.mark.parametrize('moment', range(KILLS))
def test_killed_at_any_moment(uninterrupted, tmp_path, moment):
    chance = random.Random(moment)
    # Each epoch gets its share. The first three of these moments are in the
    # second, so that gradients wait in the checkpoint, third and fourth.
    step = 6 * ((moment + 1) % 4) + chance.randint(1, 6)
    notes = tmp_path / 'notes'
    jobs = train(tmp_path / 'run', f'custom_hooks.1.file={notes}')
    # The notes, two a step and six an epoch, say how far the run has come on
    # however slow a machine. After an epoch it saves and validates.
    wait(jobs, lambda: noted(notes) >= step)
    time.sleep(chance.uniform(0, 0.5 if step % 6 == 0 else 0.15))
    kill(jobs)
    resume(tmp_path / 'run')
    assert_same_end(tmp_path / 'run', uninterrupted)


def test_killed_between_saving_and_validating(uninterrupted, tmp_path):
    """The best checkpoint would be missing."""
    notes = tmp_path / 'notes'
    jobs = train(tmp_path / 'run', f'custom_hooks.1.file={notes}',
                 'custom_hooks.1.hold=2')
    wait(jobs, lambda: noted(notes) == 13)
    kill(jobs)
    assert 'validating it now' in resume(tmp_path / 'run')
    assert_same_end(tmp_path / 'run', uninterrupted)
