"""Files that are there as a whole or not at all."""
import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mmengine.fileio import get_file_backend

from mmpe.engine.usage_error import UsageError
from mmpe.engine.whole_files import (disk_errors, remove_unfinished,
                                     write_whole)

KILLED_HALF_WAY = """
import os, signal, sys
from mmpe.engine.whole_files import write_whole
def write(part):
    part.write_text('ne')
    os.kill(os.getpid(), signal.SIGKILL)
write_whole(sys.argv[1], write)
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'epoch_1.pth'
    path.write_text('old')
    return path


def test_new_file_takes_the_place_of_the_old(path):
    get_file_backend(
        backend_args=dict(backend='mmpe.whole_files')).put(b'new', str(path))
    assert path.read_text() == 'new'
    assert list(path.parent.iterdir()) == [path]


def test_killed_half_way(path):
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, '-c', KILLED_HALF_WAY,
         str(path)],
        env={
            **os.environ, 'PYTHONPATH': str(root)
        })
    assert process.returncode < 0
    assert path.read_text() == 'old'
    assert len(list(path.parent.iterdir())) == 2
    (path.parent / 'mine.part').touch()
    remove_unfinished(path.parent, '*.pth')
    assert {one.name for one in path.parent.iterdir()} == {
        'epoch_1.pth', 'mine.part'
    }


def test_full_disk(path):

    def write(part):
        part.write_text('ne')
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(UsageError) as caught, disk_errors(path.parent):
        write_whole(path, write)
    assert str(caught.value) == f'cannot write {path}: No space left on device'
    assert path.read_text() == 'old'
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize('under', ['', 'folder'])
def test_work_dir_that_cannot_be_one(path, under):
    with pytest.raises(UsageError, match='epoch_1.pth'):
        with disk_errors(path / under):
            pytest.fail('started')
    assert logging.raiseExceptions


def test_work_dir_that_the_system_refuses(monkeypatch):
    """Such as in /proc, which says that there is no such folder."""

    def refuse(self, **kwargs):
        raise FileNotFoundError(errno.ENOENT, 'No such file', str(self))

    monkeypatch.setattr('pathlib.Path.mkdir', refuse)
    with pytest.raises(UsageError, match='cannot write somewhere'):
        with disk_errors('somewhere'):
            pytest.fail('started')


def test_other_errors_stay(tmp_path):
    with pytest.raises(ConnectionResetError):
        with disk_errors(tmp_path):
            raise ConnectionResetError(errno.ECONNRESET, 'by peer')
