"""Loading mmengine's checkpoints under torch's restricted unpickler.

Since torch 2.6, ``torch.load`` builds only classes that it knows to be
harmless. mmengine stores its message hub in every checkpoint, so every file
of the model zoo and every ``--resume`` is refused. Here the few classes that
the hub holds are added to torch's list. Nothing is unpickled without
restriction, and no other class gets in.
"""
import os
import pickle
from argparse import Namespace
from typing import Any, Callable, List, Tuple

import numpy as np
import torch
from mmengine.logging import HistoryBuffer
from mmengine.runner import checkpoint as mmengine_checkpoint

_NUMBERS = '?bhilqBHILQefd'  # numpy's codes for booleans, integers, floats
_STATISTICS = ('min', 'max', 'current', 'mean')


def allow_checkpoint_classes() -> None:
    """Let ``torch.load`` read the checkpoints that mmengine's runner writes.

    Cheap, and calling it again changes nothing. The tools call it; call it
    before ``mmdet.apis.init_detector`` as well. The restriction stays, also
    where ``TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`` is set. torch before 2.6 has
    none, so there load only files that you trust.
    """
    # Setting it is common advice against what happens without this module.
    os.environ.pop('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', None)
    if hasattr(torch.serialization, 'get_unsafe_globals_in_checkpoint'):
        torch.serialization.add_safe_globals(_harmless_globals())
    # The fork's mmengine lists getattr itself, and reads what torch refuses
    # once more, without restriction.
    if hasattr(mmengine_checkpoint, '_safe_torch_load'):
        mmengine_checkpoint._safe_torch_load = _load


def _load(file: Any, map_location: Any = None) -> Any:
    """What the stock mmengine calls."""
    return torch.load(file, map_location=map_location)


def _harmless_globals() -> List[Any]:
    """What a checkpoint may name: classes, or pairs (object, pickled name)."""
    number_dtypes = [type(np.dtype(code)) for code in _NUMBERS]
    return [
        # The arguments of a training, in the files of DETR and others.
        Namespace,
        HistoryBuffer, np.ndarray, np.dtype, *number_dtypes,
        (_history_statistic, 'builtins.getattr'), *_numpy_builders()
    ]


def _numpy_builders() -> List[Tuple[Callable, str]]:
    """numpy's array and scalar builders under the names of numpy 1 and 2."""
    builders = [np.zeros(1).__reduce__()[0], np.float64(0).__reduce__()[0]]
    return [(builder, f'{module}.{builder.__name__}') for builder in builders
            for module in ('numpy.core.multiarray', 'numpy._core.multiarray')]


def _history_statistic(owner: Any, name: str) -> Callable:
    """What ``getattr`` means in a checkpoint.

    A history buffer pickles its four statistics as ``getattr(HistoryBuffer,
    'min')`` and so on. Listing ``getattr`` itself would hand a forged file
    every attribute of every listed object.

    Raises:
        pickle.UnpicklingError: If anything else is asked for.
    """
    if owner is HistoryBuffer and name in _STATISTICS:
        return getattr(HistoryBuffer, name)
    raise pickle.UnpicklingError(
        f'the checkpoint asks for attribute {name!r} of {owner!r}; only the '
        "statistics of mmengine's HistoryBuffer are loaded")
