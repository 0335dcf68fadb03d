"""From what is in a file to tensors under the names that their code gave."""
import re
from typing import Any, Dict, Iterator, Mapping, Tuple

import torch
from torch import Tensor

from mmpe.engine.usage_error import UsageError

# What training codes put a state dict under. An average of weights is taken
# only where there is nothing else, as their own evaluations do.
CONTAINERS = ('state_dict', 'model', 'model_state_dict', 'module', 'network',
              'state_dict_ema', 'model_ema', 'ema_state_dict', 'ema')
# What wrappers put before names: DDP, Lightning, torch.compile, averages, and
# DETR's segmentation model.
WRAPPERS = re.compile(
    r'(?:(?:module|model|_orig_mod|detr|ema|ema_model|model_ema)\.)+')


def find_tensors(path: str, content: Any) -> Tuple[Dict[str, Tensor], str]:
    """The tensors of a checkpoint, without what wrappers put before names.

    Args:
        path (str): For messages.
        content (Any): What the file holds.

    Returns:
        tuple[dict[str, Tensor], str]: And under which key they were.

    Raises:
        UsageError: If there are none.
    """
    for key, tensors in _state_dicts(content, ''):
        odd = [name for name, t in tensors.items() if t.is_meta
               or t.layout != torch.strided or t.is_quantized]
        if odd:
            raise UsageError(f'{path}: {odd[0]} is no plain tensor: it is '
                             'sparse, quantized or without numbers')
        return _unwrap(tensors), key
    held = (f'keys {", ".join(map(repr, list(content)[:8]))}' if isinstance(
        content, Mapping) and content else type(content).__name__)
    raise UsageError(f'{path} holds no weights, but {held}')


def _state_dicts(content: Any,
                 at: str) -> Iterator[Tuple[str, Dict[str, Tensor]]]:
    if not isinstance(content, Mapping):
        return
    for key in CONTAINERS:
        if key in content:
            yield from _state_dicts(content[key], f'{at}.{key}'.strip('.'))
    tensors = {
        str(name): value
        for name, value in content.items() if isinstance(value, Tensor)
    }
    if tensors:
        yield at, tensors


def _unwrap(tensors: Dict[str, Tensor]) -> Dict[str, Tensor]:
    """Cut wrappers off; of two sets of weights, the one that isn't an
    average stays."""
    out, wrappers = {}, {}
    for name, tensor in tensors.items():
        found = WRAPPERS.match(name)
        wrapper = found[0] if found else ''
        own = name[len(wrapper):]
        if own in out and 'ema' not in wrappers[own]:
            continue
        out[own], wrappers[own] = tensor, wrapper
    return out
