"""Mixed precision with and without a GPU."""
from contextlib import contextmanager

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.optim import OptimWrapper
from mmengine.runner.amp import autocast
from torch import nn

from .command_line import UsageError

_ON_CPU = 'mmpe.engine.precision.BFloat16OptimWrapper'


class BFloat16OptimWrapper(OptimWrapper):
    """Training under bfloat16 autocast, on a CPU too.

    mmengine's ``AmpOptimWrapper`` refuses to work without a GPU. It scales
    the loss so that float16 gradients don't underflow; bfloat16 has the range
    of float32, so there is nothing to scale. Checkpoints of either resume in
    the other.
    """

    @contextmanager
    def optim_context(self, model: nn.Module):
        with super().optim_context(model), autocast(dtype=torch.bfloat16):
            yield


def enable_amp(cfg: Config) -> None:
    """Make ``cfg`` train in mixed precision: as ``AmpOptimWrapper`` does
    (float16 unless its ``dtype`` says otherwise) or, on a CPU, in bfloat16.

    Raises:
        UsageError: If the config has an optimizer wrapper of another kind,
            whose work would be lost.
    """
    wrapper = cfg.optim_wrapper
    kind = wrapper.get('type', 'OptimWrapper')
    if kind not in ('OptimWrapper', 'AmpOptimWrapper', _ON_CPU):
        raise UsageError('--amp replaces an OptimWrapper; the optim_wrapper '
                         f'of this config is of type {kind}')
    if get_device() == 'cpu':
        wrapper.type = _ON_CPU
        wrapper.pop('loss_scale', None)
        wrapper.pop('dtype', None)
    else:
        wrapper.type = 'AmpOptimWrapper'
        wrapper.setdefault('loss_scale', 'dynamic')
