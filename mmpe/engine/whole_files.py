"""Files that are there as a whole or not at all, whenever a run is killed."""
import errno
import logging
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Callable, Iterator, Union

from mmengine.fileio import LocalBackend, register_backend

from .usage_error import UsageError

_UNFINISHED = '.part'
# A full disk or quota, a limit on the size of files, a read-only or no folder.
_REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS,
             errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST)


def write_whole(path: Union[str, Path], write: Callable[[Path], Any]) -> None:
    """Write a file beside ``path``, then put it in its place.

    Whoever looks finds the old file or the new one, also after a SIGKILL or
    a power cut.

    Args:
        path (str or Path): The file; its folder exists.
        write (Callable): Writes the file whose path it is given.

    Raises:
        OSError: As of ``write``, for example on a full disk. What was at
            ``path`` is still there, and nothing is left beside it.
    """
    path = Path(path)
    part = part_of(path)
    try:
        write(part)
        _to_disk(part)
        os.replace(part, path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from error
    # The new name reaches the disk before anything else is deleted there.
    with suppress(OSError):  # not every file system can
        _to_disk(path.parent)


def part_of(path: Path) -> Path:
    """What is written before it is put in the place of ``path``."""
    return path.with_name(path.name + _UNFINISHED)


def remove_unfinished(folder: Union[str, Path], pattern: str) -> None:
    """Remove what killed runs left of files whose names match ``pattern``."""
    for part in Path(folder).glob(pattern + _UNFINISHED):
        part.unlink(missing_ok=True)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@register_backend('mmpe.whole_files')
class WholeFileBackend(LocalBackend):
    """mmengine's backend of local files, writing by :func:`write_whole`."""

    def put(self, obj: bytes, filepath: Union[str, Path]) -> None:
        Path(filepath).parent.mkdir(parents=True, exist_ok=True)
        write_whole(filepath, lambda part: part.write_bytes(obj))


@contextmanager
def disk_errors(work_dir: str) -> Iterator[None]:
    """Turn a disk's refusal to write into one line.

    Args:
        work_dir (str): Where the run writes. It is made, and tried, first.

    Raises:
        UsageError: Instead of the OSError.
    """
    # logging would report each line that it cannot write at length.
    raise_exceptions, logging.raiseExceptions = logging.raiseExceptions, False
    ready = False
    try:
        Path(work_dir).mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=work_dir):
            pass
        ready = True
        yield
    except OSError as error:
        # Until the folder is there, whatever is in its way is one.
        if ready and error.errno not in _REFUSALS:
            raise
        raise UsageError(f'cannot write {error.filename or work_dir}: '
                         f'{error.strerror}') from error
    finally:
        logging.raiseExceptions = raise_exceptions
