"""Checkpoints that cannot be loaded, or aren't of this model."""
import re
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

import torch
from mmengine.hooks import Hook
from mmengine.runner import CheckpointLoader, Runner, find_latest_checkpoint
from torch import nn

from mmpe.position import PositionEncoding
from .checkpoint_classes import allow_checkpoint_classes
from .optimizer_state import forget_resized
from .usage_error import UsageError

# Addresses that are downloaded to a cache, so looking at them costs nothing.
_CACHED = ('http://', 'https://', 'open-mmlab://', 'openmmlab://',
           'torchvision://', 'modelzoo://')


class Untrusted(UsageError):
    """A checkpoint holds what could run code."""


def read_checkpoint(path: str, trust: bool = False) -> Dict[str, Any]:
    """A checkpoint that is a local file, its weights left on the disk.

    Args:
        path (str): The file.
        trust (bool): Whether it may hold anything, also what runs code.
            Defaults to False.

    Raises:
        UsageError: If it is missing, empty, cut off or something else.
        Untrusted: If it holds what is no data.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise UsageError(f'no such checkpoint file: {path}')
    if not file.stat().st_size:
        raise UsageError(f'checkpoint {path} is empty')
    allow_checkpoint_classes()
    with file.open('rb') as opened:
        start = opened.read(4)
    is_zip = start == b'PK\x03\x04'
    if not is_zip and start[:1] != b'\x80':  # a pickle, of torch before 1.6
        raise UsageError(f'{path} is no checkpoint: torch saved no such file')
    try:
        # torch before 2.6 has no restriction that admits mmengine's classes.
        anything = dict(weights_only=False) if trust else {}
        return torch.load(file, map_location='cpu', mmap=is_zip, **anything)
    except Exception as error:  # whatever a broken pickle raises
        raise _refusal(path, error) from error


def check_weights(runner: Runner, complete: bool) -> None:
    """Check that what a run will load or resume is of its model.

    Args:
        runner (Runner): It hasn't started yet.
        complete (bool): Whether each parameter of the model must be there;
            otherwise one is enough.

    Raises:
        UsageError: If it is not, or cannot be read.
    """
    # mmengine calls it after each checkpoint that it reads.
    runner.register_hook(CheckpointIsData(), 'VERY_HIGH')
    path, resume = runner.cfg.get('load_from'), runner.cfg.get('resume')
    if path is None and resume:
        path = find_latest_checkpoint(runner.work_dir)
    checkpoint = _read_anything(path) if path else None
    if checkpoint is None:
        return
    if resume:
        _check_resumable(path, checkpoint)
    model = runner.model
    while hasattr(model, 'module'):  # of several processes, or test time
        model = model.module
    weights = _state_dict(path, checkpoint)
    _check_names(path, weights, model, complete or resume)
    _check_tables(path, weights, model)


class CheckpointIsData(Hook):
    """Keeps mmengine from running a config that a checkpoint brings along:
    resuming executes ``meta['config']``, which files of MMDetection 2 have,
    only to look up a number of GPUs. And from an optimizer that doesn't fit.
    """

    def after_load_checkpoint(self, runner: Runner,
                              checkpoint: Dict[str, Any]) -> None:
        meta = checkpoint.get('meta')
        if isinstance(meta, dict):
            meta.pop('config', None)
        if runner.cfg.get('resume') and 'optimizer' in checkpoint:
            forget_resized(runner, checkpoint['optimizer'])


def _read_anything(path: str) -> Optional[Any]:
    if '://' not in path:
        return read_checkpoint(path)
    if not path.startswith(_CACHED):
        return None
    try:
        return CheckpointLoader.load_checkpoint(path, map_location='cpu')
    except Exception as error:  # of the network, too
        raise _refusal(path, error) from error


def _refusal(path: str, error: Exception) -> UsageError:
    text = str(error)
    name = re.search(r'\bGLOBAL ([\w.]+)', text)
    if name:
        return Untrusted(
            f'checkpoint {path} is refused: it holds {name[1]}, but only '
            'data and the classes that mmengine saves are loaded, since '
            'another could run any code')
    attribute = re.search(r'the checkpoint asks for .*', text)
    if attribute:
        return Untrusted(f'checkpoint {path} is refused: {attribute[0]}')
    if '://' in path:
        return UsageError(
            f'checkpoint {path}: {type(error).__name__}: {text}')
    size = Path(path).expanduser().stat().st_size
    return UsageError(
        f'checkpoint {path}, {size} bytes, is cut off, damaged or none at all')


def _state_dict(path: str, checkpoint: Any) -> Mapping[str, Any]:
    weights = checkpoint
    if isinstance(checkpoint, Mapping):
        weights = checkpoint.get('state_dict', checkpoint)
    if not isinstance(weights, Mapping):
        raise UsageError(f'checkpoint {path} holds a '
                         f'{type(weights).__name__}, not a state_dict')
    if not any(isinstance(value, torch.Tensor) for value in weights.values()):
        raise UsageError(
            f'checkpoint {path} has no state_dict with weights; it has '
            f'{", ".join(map(str, list(weights)[:10])) or "nothing"}')
    return weights


def _check_resumable(path: str, checkpoint: Any) -> None:
    meta = checkpoint.get('meta') if isinstance(checkpoint, Mapping) else None
    if 'optimizer' not in checkpoint or not isinstance(
            meta, Mapping) or not {'epoch', 'iter'} <= set(meta):
        raise UsageError(
            f'checkpoint {path} has no optimizer and meta.epoch of a training '
            'to resume; load_from=... starts a new one from its weights')


def _check_names(path: str, weights: Mapping[str, Any], model: nn.Module,
                 complete: bool) -> None:
    found = {re.sub(r'^module\.', '', name) for name in weights}
    wanted = [name for name, _ in model.named_parameters()]
    missing = [name for name in wanted if name not in found]
    if missing and (complete or len(missing) == len(wanted)):
        raise UsageError(
            f'checkpoint {path} is of another model: it lacks {len(missing)} '
            f'of the {len(wanted)} parameters, such as {missing[0]!r}; it '
            f'has {sorted(found)[0]!r}')


def _check_tables(path: str, weights: Mapping[str, Any],
                  model: nn.Module) -> None:
    """Whether the tables of position encodings fit or can be resized."""
    weights = {re.sub(r'^module\.', '', k): v for k, v in weights.items()}
    encodings = {name: module for name, module in model.named_modules()
                 if isinstance(module, PositionEncoding)}
    for name, module in encodings.items():
        try:
            module.adapt(weights, f'{name}.')
        except ValueError as error:
            raise UsageError(f'checkpoint {path}: {error}') from error
    for name, module in encodings.items():
        for own, p in module.named_parameters(name):
            # MMEngine would only warn, and train on from random numbers.
            found = getattr(weights.get(own), 'shape', p.shape)
            if found != p.shape:
                raise UsageError(
                    f'checkpoint {path}: {own} has the shape '
                    f'{tuple(found)}, the model needs {tuple(p.shape)}')
