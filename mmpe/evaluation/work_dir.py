"""What lies in a work dir: a folder for each time that a tool ran in it."""
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Optional

from mmengine.config import Config

from mmpe.engine.config_text import read_config_text

_HEAD_LINES = 4000  # of a log: versions come after the whole config
_VERSIONS = ('Python', 'PyTorch', 'TorchVision', 'OpenCV', 'NVCC', 'MMEngine',
             'MMCV', 'MMDetection', 'mmpe')


@dataclass(frozen=True)
class Session:
    """One run of a tool.

    Args:
        folder (Path): Named by the time that the tool began.
    """
    folder: Path

    @property
    def scalars(self) -> Path:
        return self.folder / 'vis_data' / 'scalars.json'

    @property
    def has_trained(self) -> bool:
        """Whether a loss was written down."""
        try:
            with self.scalars.open(errors='replace') as file:
                return any('"loss"' in line for line in file)
        except OSError:
            return False

    @property
    def has_tested(self) -> bool:
        return (self.folder / f'{self.folder.name}.json').is_file()

    @property
    def cfg(self) -> Optional[Config]:
        return read_config(self.folder / 'vis_data' / 'config.py')

    @property
    def environment(self) -> Dict[str, str]:
        """What the log says of software and machine: ``PyTorch``, ``GPU``,
        ``seed``, ``processes`` and the like; empty without a log."""
        log = self.folder / f'{self.folder.name}.log'
        try:
            with log.open(errors='replace') as file:
                lines = [line for line, _ in zip(file, range(_HEAD_LINES))]
        except OSError:
            return {}
        found = {}
        for line in lines:
            key, colon, value = line.strip().partition(': ')
            if not (line.startswith('    ') and colon):
                continue
            if key in _VERSIONS:
                found.setdefault(key, _short(key, value))
            elif re.fullmatch(r'GPU [\d,]+', key):
                found.setdefault('GPU', value)
            elif key == 'seed' and value.isdigit():
                found.setdefault('seed', value)
            elif key == 'GPU number' and value.isdigit():
                found.setdefault('processes', value)
        return found


def _short(key: str, value: str) -> str:
    if key == 'Python':
        return value.split(' ')[0]
    release = re.search(r'release ([\d.]+)', value)
    return release[1] if key == 'NVCC' and release else value


def sessions(work_dir: Path) -> List[Session]:
    """In the order in which they began."""
    return [
        Session(folder) for folder in sorted(work_dir.iterdir())
        if folder.is_dir() and ((folder / 'vis_data').is_dir() or
                                (folder / f'{folder.name}.log').is_file())
    ]


def training_sessions(work_dir: Path) -> List[Session]:
    """Those of the newest training: the one that began it and those that
    resumed it. A training that began anew has replaced what was before."""
    trained = [s for s in sessions(work_dir) if s.has_trained]
    for i in range(len(trained) - 1, 0, -1):
        cfg = trained[i].cfg
        if cfg is not None and not cfg.get('resume'):
            return trained[i:]
    return trained


def read_config(path: Path) -> Optional[Config]:
    """A config that MMEngine wrote out, as data; None if it can't be read."""
    try:
        settings = read_config_text(path.read_text(errors='replace'))
        return Config(settings) if settings else None
    except (OSError, KeyError):  # reserved names, in a file of another kind
        return None


def tested_config(work_dir: Path, name: Any) -> Optional[Config]:
    """The config of the newest test; without one, the config called ``name``
    or else the newest."""
    for session in reversed(sessions(work_dir)):
        if session.has_tested and session.cfg is not None:
            return session.cfg
    for path in [work_dir / f'{name}.py', *_configs(work_dir)]:
        cfg = read_config(path)
        if cfg is not None:
            return cfg
    return None


def newest_config_name(work_dir: Path) -> Optional[str]:
    """Name of the config that a tool was last given, without ``.py``."""
    return next((path.stem for path in _configs(work_dir)), None)


def _configs(work_dir: Path) -> List[Path]:
    # Each tool puts its config in the work dir, over one of the same name.
    return sorted(
        work_dir.glob('*.py'), key=lambda p: p.stat().st_mtime, reverse=True)
