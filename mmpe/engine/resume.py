"""Which checkpoint a run goes on from, and with which seed."""
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, Optional

import torch
from mmengine.config import Config

from .checkpoint_classes import allow_checkpoint_classes
from .usage_error import UsageError

_NAME = re.compile(r'(?:epoch|iter)_(\d+)\.pth')


def resume(cfg: Config, checkpoint: str) -> None:
    """Have ``cfg`` go on from a checkpoint, with the seed of its run.

    Args:
        cfg (Config): With ``work_dir``.
        checkpoint (str): Path or address, or 'auto', the last whole
            checkpoint in the work dir. If there is none, ``cfg`` stays as it
            is: a job that is always started with ``--resume`` has nothing to
            resume the first time, and begins from its ``load_from``.
    """
    if checkpoint == 'auto':
        checkpoint = find_last_whole(cfg.work_dir)
        if checkpoint is None:
            return
    cfg.resume, cfg.load_from = True, checkpoint
    if checkpoint == str(_named(Path(cfg.work_dir))):
        # mmengine finds it, and the config that is left in the work dir will
        # find a later one.
        cfg.load_from = None
    seed = (_read_meta(checkpoint) or {}).get('seed')
    if seed is None:
        return
    # mmengine restores the seed too, but after the data loader is made. With
    # diff_rank_seed it writes the seed of the first process.
    randomness = cfg.get('randomness', {})
    if randomness.get('seed') not in (None, seed):
        _say(f'The seed is that of {checkpoint}, {seed}, and not '
             f'{randomness["seed"]}')
    cfg.randomness = {**randomness, 'seed': seed}


def find_last_whole(work_dir: str) -> Optional[str]:
    """The last checkpoint that was saved and can be read, or None.

    That is the one ``last_checkpoint`` names, unless it was cut off or moved;
    then one line says which is taken instead.

    Raises:
        UsageError: If there are checkpoints, but none can be read.
    """
    named = _named(Path(work_dir))
    candidates = [named] if named else []
    candidates += sorted(
        (path for path in _numbered(Path(work_dir)) if path != named),
        key=lambda path: int(_NAME.fullmatch(path.name)[1]),
        reverse=True)
    for path in candidates:
        if _read_meta(path) is None:
            continue
        if path != named:
            why = f'{named} cannot be read' if named else (
                f'{work_dir} has no last_checkpoint')
            _say(f'{why}: resuming from {path}')
        return str(path)
    if candidates:
        raise UsageError(
            f'no checkpoint in {work_dir} can be read, such as '
            f'{candidates[0]}; without --resume the run starts anew')
    return None


def _named(work_dir: Path) -> Optional[Path]:
    try:
        name = (work_dir / 'last_checkpoint').read_text().strip()
    except FileNotFoundError:
        return None
    return Path(name) if name else None


def _numbered(work_dir: Path) -> Iterator[Path]:
    return (path for path in work_dir.glob('*_*.pth')
            if _NAME.fullmatch(path.name))


def _read_meta(path: Any) -> Optional[Dict[str, Any]]:
    """A checkpoint's ``meta``, or None if it is cut off or no checkpoint."""
    allow_checkpoint_classes()
    try:
        # Mapped into memory the weights, most of the file, are not read.
        return torch.load(path, map_location='cpu', mmap=True)['meta']
    except Exception:  # whatever a broken pickle raises
        return None


def _say(text: str) -> None:
    if os.environ.get('RANK', '0') == '0':
        print(text, flush=True)
