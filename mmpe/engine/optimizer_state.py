"""The state of an optimizer whose parameters were resized on loading."""
import logging
from typing import Any, Dict

from mmengine.logging import print_log
from mmengine.runner import Runner
from torch import Tensor

from .usage_error import UsageError


def forget_resized(runner: Runner, saved: Dict[str, Any]) -> None:
    """Leave out what a checkpoint's optimizer knows of parameters that have
    another shape now, such as tables of positions of another grid. For them
    it starts anew, with a line in the log.

    Args:
        runner (Runner): About to resume; its optimizer is built.
        saved (dict): The state of the optimizer, changed in place.

    Raises:
        UsageError: If it is of another number of parameters.
    """
    optimizer = getattr(runner.optim_wrapper, 'optimizer', None)
    if optimizer is None or 'param_groups' not in saved:
        return
    own = [p for group in optimizer.param_groups for p in group['params']]
    theirs = [i for group in saved['param_groups'] for i in group['params']]
    if len(own) != len(theirs):
        raise UsageError(
            f'the checkpoint has an optimizer of {len(theirs)} parameters, '
            f'the model has {len(own)}: another list of encodings is not '
            'resumed; load_from=... starts a new training from its weights')
    names = {p: name for name, p in runner.model.named_parameters()}
    for index, parameter in zip(theirs, own):
        state = saved['state'].get(index, {})
        if any(isinstance(value, Tensor) and value.dim()
               and value.shape != parameter.shape for value in state.values()):
            del saved['state'][index]
            print_log(
                f'{names.get(parameter)} was resized: what the optimizer knew '
                'of it is left out',
                logger='current',
                level=logging.WARNING)
