"""Joining the processes of a run, with GPUs or without.

mmengine 0.10 can only start processes that have a GPU each: it selects a CUDA
device before it joins the process group, and hands that device to
DistributedDataParallel. It keeps a group that exists already, though, and a
wrapper config that names no device. So without GPUs we join a gloo group
first; with GPUs all is left to mmengine.
"""
import ctypes
import os
import signal
import subprocess
import sys
from datetime import timedelta

import torch
from mmengine.config import Config
from mmengine.device import get_device
from mmengine.registry import MODEL_WRAPPERS
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from .usage_error import UsageError

_PR_SET_PDEATHSIG = 1  # of Linux

# How each launcher names what torch calls RANK, WORLD_SIZE and LOCAL_RANK.
_VARIABLES = {
    'pytorch': ('RANK', 'WORLD_SIZE', 'LOCAL_RANK'),
    'slurm': ('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID'),
    'mpi': ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE',
            'OMPI_COMM_WORLD_LOCAL_RANK'),
}


def set_up_processes(cfg: Config) -> None:
    """Prepare ``cfg`` and this process for the launcher that started it.

    Args:
        cfg (Config): With ``launcher``. On a CPU its ``model_wrapper_cfg`` is
            filled in; what the user wrote there stays.

    Raises:
        UsageError: If that launcher didn't start this process, or started
            more processes than there are GPUs.
    """
    if cfg.launcher == 'none':
        return
    _name_ranks(cfg.launcher)
    if cfg.launcher == 'pytorch':
        _end_with_parent()
    elif cfg.launcher == 'slurm':
        os.environ.setdefault('MASTER_PORT', _slurm_port())
    if get_device() != 'cpu':
        _check_gpus()
        return
    _wrap_without_device(cfg)
    if not distributed.is_initialized():
        _join_gloo(cfg)


def leave_processes() -> None:
    """Wait until all processes are done, then leave their group.

    A process that exits with its group open can abort on the way out, whereupon
    torchrun stops the others: in the middle of a checkpoint, if that is where
    they are.
    """
    if distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()


def _name_ranks(launcher: str) -> None:
    """Set torch's variables from those of the launcher."""
    ours = _VARIABLES['pytorch']
    theirs = _VARIABLES[launcher]
    missing = [name for name in theirs if name not in os.environ]
    if missing:
        raise UsageError(
            f'--launcher {launcher} expects {", ".join(missing)} in the '
            'environment, where the launcher puts it; to start several '
            'processes on one machine use tools/dist_train.sh or '
            'tools/dist_test.sh')
    for name, value in zip(ours, [os.environ[name] for name in theirs]):
        os.environ[name] = value


def _end_with_parent() -> None:
    """Torchrun ends its processes when one fails, but not when it is killed
    itself: they would train on, and nobody would know."""
    if sys.platform == 'linux':
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _slurm_port() -> str:
    """One port for all processes of a job, and another for each job: jobs
    may share a machine. Below those that systems give to clients."""
    job, step = (int(os.environ.get(name, 0))
                 for name in ('SLURM_JOB_ID', 'SLURM_STEP_ID'))
    return str(10000 + (31 * job + step) % 20000)


def _check_gpus() -> None:
    gpus = torch.cuda.device_count()
    processes = int(
        os.environ.get('LOCAL_WORLD_SIZE',
                       int(os.environ['LOCAL_RANK']) + 1))
    if torch.cuda.is_available() and processes > gpus:
        raise UsageError(
            f'{processes} processes on this machine, but {gpus} GPUs; each '
            'process needs one (CUDA_VISIBLE_DEVICES="" runs on the CPU)')


def _join_gloo(cfg: Config) -> None:
    if cfg.launcher == 'slurm' and 'MASTER_ADDR' not in os.environ:
        os.environ['MASTER_ADDR'] = _first_slurm_node()
    os.environ.setdefault('MASTER_ADDR', '127.0.0.1')
    os.environ.setdefault('MASTER_PORT', '29500')
    seconds = cfg.get('env_cfg', {}).get('dist_cfg', {}).get('timeout')
    timeout = {} if seconds is None else {'timeout': timedelta(0, seconds)}
    distributed.init_process_group('gloo', **timeout)


def _first_slurm_node() -> str:
    nodes = subprocess.run(
        ['scontrol', 'show', 'hostnames', os.environ['SLURM_NODELIST']],
        check=True, capture_output=True, text=True).stdout
    return nodes.split()[0]


def _wrap_without_device(cfg: Config) -> None:
    """Keep mmengine from naming a GPU to DistributedDataParallel."""
    if cfg.get('model_wrapper_cfg') is None:
        # What mmengine itself would write, but for the device.
        cfg.model_wrapper_cfg = dict(
            type='MMDistributedDataParallel',
            broadcast_buffers=False,
            find_unused_parameters=cfg.get('find_unused_parameters', False))
    wrapper = cfg.model_wrapper_cfg
    kind = MODEL_WRAPPERS.get(
        wrapper.get('type', 'MMDistributedDataParallel'))
    if issubclass(kind, DistributedDataParallel):
        wrapper.setdefault('device_ids', None)
