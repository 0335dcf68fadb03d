"""Going on after an interruption as if there had been none."""
import random
import warnings
from typing import Any, Dict

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dist import all_gather_object, all_reduce_params, broadcast
from mmengine.dist import get_rank, is_distributed
from mmengine.hooks import EMAHook, Hook
from mmengine.model import is_model_wrapper
from mmengine.runner import IterBasedTrainLoop, Runner
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from .usage_error import UsageError

_HOOK = 'mmpe.engine.exact_resume.ExactResumeHook'
_SEED_WORKER = 'mmpe.engine.exact_resume.seed_worker'
_GRADIENTS = 'accumulated_gradients'


class ExactResumeHook(Hook):
    """Makes what a run does from an epoch's begin on depend on nothing but
    its checkpoint, its seed and the number of its processes.

    Then a run that was killed and resumed ends with the same bits as one that
    was not, on one machine and with one number of processes. mmengine saves
    weights, optimizer, schedulers, EMA and message hub. What it leaves out is
    made equal at each epoch, interrupted or not:

    - the random state of each process, and by it that of its data workers, is
      seeded from the seed of the run, the epoch and the rank;
    - statistics of norms, which each process gathers from its own images, are
      those of the first process, which are saved; after ``SyncBuffersHook``,
      where there is one, so that its means stay;
    - gradients that wait for more batches (``accumulative_counts``) are
      averaged over the processes, and saved;
    - DistributedDataParallel orders its sums anew.

    Note:
        An ``IterBasedTrainLoop`` has no epochs: there the main process is
        seeded at each iteration, and mmengine loads and drops the data seen.
        That is exact with ``InfiniteSampler``, ``num_workers`` of at least 1,
        and no gradients waiting when a checkpoint is saved. On a GPU all this
        holds as far as the kernels are deterministic; see mmengine's
        ``randomness=dict(deterministic=True)``. mmengine's
        ``EarlyStoppingHook`` starts to count anew.
    """
    # Later than hooks that use random numbers or change buffers, but before
    # checkpoints are saved (90).
    priority = 80

    def before_train(self, runner: Runner) -> None:
        states = all_gather_object((runner.epoch, runner.iter, runner.seed))
        for rank, (epoch, iteration, _) in enumerate(states):
            if (epoch, iteration) != states[0][:2]:
                raise UsageError(
                    f'process {rank} goes on from epoch {epoch}, process 0 '
                    f'from epoch {states[0][0]}: all must see the same work '
                    'dir, or be given the same --resume CHECKPOINT')
        self.seed = states[0][2]
        self.by_iteration = isinstance(runner.train_loop, IterBasedTrainLoop)

    def before_train_epoch(self, runner: Runner) -> None:
        _seed_process(self.seed, runner.epoch)
        if isinstance(runner.model, DistributedDataParallel):
            _forget_order_of_sums(runner.model)

    def before_train_iter(self, runner: Runner, **kwargs) -> None:
        if self.by_iteration:
            _seed_process(self.seed, runner.iter)

    def after_train_epoch(self, runner: Runner) -> None:
        if is_distributed():
            _broadcast_buffers(runner.model)
            _average_waiting_gradients(runner.model)
        for hook in runner.hooks:
            if isinstance(hook, EMAHook):
                _settle_buffers(hook)

    def before_save_checkpoint(self, runner: Runner,
                               checkpoint: Dict[str, Any]) -> None:
        gradients = _waiting_gradients(runner.model)
        # Best checkpoints are not for resuming and have no optimizer.
        if gradients and 'optimizer' in checkpoint:
            checkpoint[_GRADIENTS] = {
                name: gradient.cpu()
                for name, gradient in gradients.items()
            }

    def after_load_checkpoint(self, runner: Runner,
                              checkpoint: Dict[str, Any]) -> None:
        if not runner._resume:
            return
        gradients = checkpoint.get(_GRADIENTS, {})
        for name, parameter in _without_wrapper(
                runner.model).named_parameters():
            if name in gradients:
                parameter.grad = gradients[name].to(parameter.device)


def _seed_process(*seed: int) -> None:
    numbers = np.random.SeedSequence([*seed, get_rank()]).generate_state(3)
    random.seed(int(numbers[0]))
    np.random.seed(numbers[1])
    torch.manual_seed(int(numbers[2]))


def _without_wrapper(model: nn.Module) -> nn.Module:
    return model.module if is_model_wrapper(model) else model


def _broadcast_buffers(model: nn.Module) -> None:
    saved = model.state_dict().keys()
    for name, buffer in model.named_buffers():
        if name in saved:
            broadcast(buffer)


def _waiting_gradients(model: nn.Module) -> Dict[str, Tensor]:
    """Gradients that no optimizer step has used yet, by parameter."""
    return {
        name: parameter.grad
        for name, parameter in _without_wrapper(model).named_parameters()
        if parameter.grad is not None
    }


def _average_waiting_gradients(model: nn.Module) -> None:
    """Give each process the mean; averaged once more, it stays as it is."""
    mine = _waiting_gradients(model)
    names = sorted(set().union(*all_gather_object(list(mine))))
    for name in names:
        if name not in mine:  # of a parameter that had no part in the loss
            parameter = _without_wrapper(model).get_parameter(name)
            parameter.grad = mine[name] = torch.zeros_like(parameter)
    all_reduce_params([mine[name] for name in names], op='mean')


def _settle_buffers(hook: EMAHook) -> None:
    """Make the averaged model's buffers equal on all processes and, where
    they are not averaged, those of the model, as validation takes them."""
    averaged = hook.ema_model
    if averaged.update_buffers:
        if is_distributed():
            _broadcast_buffers(averaged)
        return
    for buffer, own in zip(averaged.module.buffers(),
                           hook.src_model.buffers()):
        buffer.copy_(own)


def _forget_order_of_sums(model: DistributedDataParallel) -> None:
    """Put ``model`` in the state in which it was made.

    After its first step it sorts its buckets by the order in which gradients
    came. The buckets decide in which order three or more processes are summed
    and so the last bits. A resumed run begins with new buckets; so does each
    epoch of any run.
    """
    # What pickling does, the one way to new buckets that torch offers.
    model.__setstate__(model.__getstate__())


def seed_worker(worker_id: int,
                disable_subprocess_warning: bool = False) -> None:
    """Leave a data worker the seeds that torch gave it.

    They come from the random state of the main process, so they are new in
    each epoch, and the same in a resumed one. The function that mmengine takes
    by itself gives a worker the same seed in each epoch.

    Args:
        worker_id (int): Counted from 0 in each process.
        disable_subprocess_warning (bool): As in mmengine's data loaders: only
            worker 0 warns. Defaults to False.
    """
    np.random.seed(torch.initial_seed() % 2**32)
    if disable_subprocess_warning and worker_id:
        warnings.simplefilter('ignore')


def make_resumable(cfg: Config) -> None:
    """Have a training of ``cfg`` go on exactly after an interruption."""
    hooks = cfg.get('custom_hooks') or []
    if all(hook.get('type') not in (_HOOK, ExactResumeHook) for hook in hooks):
        cfg.custom_hooks = [*hooks, dict(type=_HOOK)]
    loader = cfg.train_dataloader
    # Persistent workers carry their random state from epoch to epoch, where
    # nobody can save it. Starting them anew costs a moment an epoch.
    loader.persistent_workers = False
    if 'worker_init_fn' not in loader:
        loader.worker_init_fn = dict(
            type=_SEED_WORKER,
            disable_subprocess_warning=loader.pop(
                'disable_subprocess_warning', False))
