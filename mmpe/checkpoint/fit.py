"""Fits renamed tensors to a model, and keeps account of every one."""
import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from mmpe.engine.usage_error import UsageError
from mmpe.position import PositionEncoding, PositionEncodingList
from .rules import Left, Renamed

LOADED, RESIZED, INITIALISED, DROPPED = STATUSES = (
    'loaded', 'resized', 'initialised', 'dropped')
COUNTER = '.num_batches_tracked'
"""What a norm counts and, having a momentum, never reads."""


@dataclass(frozen=True)
class Entry:
    """What became of a tensor of the checkpoint or of the model.

    Args:
        status (str): One of ``STATUSES``.
        name (str): In the model or, if it is dropped, in the checkpoint.
        note (str): From which names, how, by which encoding or why not.
        parameters (int): How many numbers are parameters of the model.
        is_position (bool): Whether it belongs to a position encoding.
        is_missed (bool): Whether ``--strict`` refuses it: something outside
            the position encodings that the checkpoint or the model hasn't
            got, or a shape that doesn't fit.
    """
    status: str
    name: str
    note: str = ''
    parameters: int = 0
    is_position: bool = False
    is_missed: bool = False


def fit(path: str, model: nn.Module, renamed: Mapping[str, Renamed],
        left: Sequence[Left]) -> Tuple[Dict[str, Tensor], List[Entry]]:
    """Tensors for all of a model: the checkpoint's where they fit, the
    model's own, as it was initialised, elsewhere.

    Args:
        path (str): Of the checkpoint, for messages.
        model (nn.Module): Initialised.
        renamed (Mapping[str, Renamed]): Of the checkpoint, by name in the
            model.
        left (Sequence[Left]): Of the checkpoint, without a place.

    Returns:
        tuple[dict[str, Tensor], list[Entry]]: A state dict, and the account.

    Raises:
        UsageError: If a table of positions can't be made to fit.
    """
    weights = {name: item.tensor for name, item in renamed.items()}
    resized = _resize(path, model, weights, renamed)
    counts = {name: p.numel() for name, p in model.named_parameters()}
    owners = _owners(model)
    out: Dict[str, Tensor] = {}
    entries: List[Entry] = []
    for name, own in model.state_dict().items():
        about = dict(
            name=name,
            parameters=counts.get(name, 0),
            is_position='positional_encoding.' in name)
        found = weights.pop(name, None)
        if (found is not None and found.shape == own.shape
                and found.is_floating_point() == own.is_floating_point()):
            out[name] = _alone(found.detach().to(own.dtype))
            item = renamed.get(name)
            sources = () if item is None else item.sources
            note = '' if sources == (name, ) else ' and '.join(sources)
            status = LOADED
            if name in resized:
                status, note = RESIZED, resized[name]
            entries.append(Entry(status, note=note, **about))
            continue
        out[name] = own
        if name.endswith(COUNTER):
            continue
        missed = not about['is_position']
        note = owners(name) if about['is_position'] else (
            'the checkpoint has none')
        if found is not None:
            note = f'{tuple(own.shape)}, the checkpoint has a shape of ' \
                   f'{tuple(found.shape)}'
            sources = ' and '.join(renamed[name].sources)
            missed = True
            entries.append(
                Entry(
                    DROPPED, sources, f'it is {_kind(found)}, {name} of the '
                    f'model needs {_kind(own)}', 0,
                    about['is_position'], missed))
        entries.append(Entry(INITIALISED, note=note, is_missed=missed,
                             **about))
    encodings = set(map(_encoding, out))
    for name in weights:
        if name not in renamed:
            continue
        # Of an encoding that the model hasn't got; None stands for no one's.
        position = _encoding(name) not in encodings
        for source in renamed[name].sources:
            hint = renamed[name].hint or f'the model has no {name}'
            entries.append(
                Entry(DROPPED, source, hint, 0, position,
                      not (position or name.endswith(COUNTER))))
    entries += [
        Entry(DROPPED, item.source, item.reason, 0, False, not item.harmless)
        for item in left
    ]
    if not any(e.status in (LOADED, RESIZED) and e.parameters
               for e in entries):
        some = next(e for e in entries if e.status == DROPPED)
        raise UsageError(
            f'{path} is of another model: none of its {len(renamed)} tensors '
            f'fits, such as {some.name}: {some.note}')
    return out, entries


def _resize(path: str, model: nn.Module, weights: Dict[str, Tensor],
            renamed: Mapping[str, Renamed]) -> Dict[str, str]:
    """How each table was changed that had to be, by name."""
    changes = {}
    for name, module in model.named_modules():
        if isinstance(module, PositionEncoding):
            try:
                for change in module.adapt(weights, f'{name}.'):
                    changes[change.name] = (
                        f'{change.how}, from {change.before} to '
                        f'{change.after}')
            except ValueError as error:
                said = str(error)
                sources = [s for own, item in renamed.items()
                           if own in said for s in item.sources]
                raise UsageError(
                    f'{path}: {" and ".join(sources)}: {said}') from error
    return changes


def _encoding(name: str) -> Optional[str]:
    """The encoding that a parameter is of, by its name in the list."""
    found = re.match(r'.*positional_encoding\.[^.]+\.', name)
    return found and found[0]


def _owners(model: nn.Module):
    """A function from a parameter's name to the encoding that it is of."""
    types = {
        f'{name}.': f'mmpe.{type(module).__name__}'
        for name, module in model.named_modules()
        if isinstance(module, PositionEncoding)
        and not isinstance(module, PositionEncodingList)
    }
    return lambda name: next(
        (kind for start, kind in types.items() if name.startswith(start)),
        'a position encoding')


def _kind(tensor: Tensor) -> str:
    """Shape and type, in words."""
    number = str(tensor.dtype).rpartition('.')[2]
    return f'{tuple(tensor.shape)} {number}'


def _alone(tensor: Tensor) -> Tensor:
    """Without the rest of the memory it is a view of, which would be saved
    with it."""
    held = tensor.untyped_storage().nbytes()
    if held == tensor.numel() * tensor.element_size():
        return tensor
    return tensor.clone(memory_format=torch.contiguous_format)
