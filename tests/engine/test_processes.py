"""Preparing a process for the launcher that started it."""
import os

import pytest
import torch
from mmengine.config import Config

from mmpe.engine import processes
from mmpe.engine.command_line import UsageError
from mmpe.engine.processes import set_up_processes

RANKS = ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE',
         'MASTER_ADDR', 'MASTER_PORT')


@pytest.fixture(autouse=True)
def joined(monkeypatch):
    """No launcher, no GPU; the groups that are joined are only noted."""
    groups = []
    for name in RANKS:  # setenv first, so that the end of the test removes it
        monkeypatch.setenv(name, '0')
        monkeypatch.delenv(name)
    monkeypatch.setattr(processes, 'get_device', lambda: 'cpu')
    monkeypatch.setattr(torch.distributed, 'init_process_group',
                        lambda backend, **kwargs: groups.append(
                            (backend, kwargs)))
    return groups


@pytest.fixture
def torchrun(monkeypatch):
    monkeypatch.setattr(processes, '_end_with_parent', lambda: None)
    monkeypatch.setenv('RANK', '3')
    monkeypatch.setenv('WORLD_SIZE', '4')
    monkeypatch.setenv('LOCAL_RANK', '1')
    monkeypatch.setenv('LOCAL_WORLD_SIZE', '2')


def test_one_process_stays_alone(joined):
    cfg = Config(dict(launcher='none'))
    set_up_processes(cfg)
    assert not joined
    assert 'model_wrapper_cfg' not in cfg


def test_gloo_without_gpu(joined, torchrun):
    """Whatever the backend of MMDetection's default_runtime says."""
    cfg = Config(
        dict(
            launcher='pytorch',
            env_cfg=dict(dist_cfg=dict(backend='nccl', timeout=60))))
    set_up_processes(cfg)
    (backend, kwargs), = joined
    assert backend == 'gloo'
    assert kwargs['timeout'].total_seconds() == 60
    assert cfg.model_wrapper_cfg == dict(
        type='MMDistributedDataParallel',
        broadcast_buffers=False,
        find_unused_parameters=False,
        device_ids=None)


def test_wrapper_of_the_user_stays(torchrun):
    cfg = Config(
        dict(
            launcher='pytorch',
            find_unused_parameters=False,
            model_wrapper_cfg=dict(
                type='MMDistributedDataParallel', static_graph=True)))
    set_up_processes(cfg)
    assert cfg.model_wrapper_cfg == dict(
        type='MMDistributedDataParallel', static_graph=True, device_ids=None)


def test_find_unused_parameters_is_heard(torchrun):
    cfg = Config(dict(launcher='pytorch', find_unused_parameters=True))
    set_up_processes(cfg)
    assert cfg.model_wrapper_cfg.find_unused_parameters


@pytest.mark.parametrize('launcher, names', [
    ('slurm', ('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID')),
    ('mpi', ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE',
             'OMPI_COMM_WORLD_LOCAL_RANK')),
])
def test_other_launchers_name_the_ranks_otherwise(joined, monkeypatch,
                                                  launcher, names):
    monkeypatch.setenv('MASTER_ADDR', 'node7')
    for name, value in zip(names, '341'):
        monkeypatch.setenv(name, value)
    set_up_processes(Config(dict(launcher=launcher)))
    assert [os.environ[name] for name in RANKS[:3]] == ['3', '4', '1']
    assert os.environ['MASTER_ADDR'] == 'node7'
    assert joined


def test_each_slurm_job_has_a_port_of_its_own(joined, monkeypatch):
    for name in ('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID'):
        monkeypatch.setenv(name, '0')
    monkeypatch.setenv('MASTER_ADDR', 'node7')
    ports = set()
    for job, step in [(1234567, 0), (1234567, 1), (1234568, 0)]:
        monkeypatch.delenv('MASTER_PORT', raising=False)
        monkeypatch.setenv('SLURM_JOB_ID', str(job))
        monkeypatch.setenv('SLURM_STEP_ID', str(step))
        set_up_processes(Config(dict(launcher='slurm')))
        ports.add(int(os.environ['MASTER_PORT']))
    assert len(ports) == 3
    assert all(10000 <= port < 30000 for port in ports)


@pytest.mark.parametrize('launcher, name', [('pytorch', 'WORLD_SIZE'),
                                            ('slurm', 'SLURM_PROCID'),
                                            ('mpi', 'OMPI_COMM_WORLD_RANK')])
def test_launcher_that_did_not_start_it(joined, launcher, name):
    with pytest.raises(UsageError, match=name):
        set_up_processes(Config(dict(launcher=launcher)))
    assert not joined


@pytest.mark.parametrize('gpus, fits', [(1, False), (2, True)])
def test_each_process_needs_a_gpu(joined, torchrun, monkeypatch, gpus, fits):
    monkeypatch.setattr(processes, 'get_device', lambda: 'cuda')
    monkeypatch.setattr(torch.cuda, 'is_available', lambda: True)
    monkeypatch.setattr(torch.cuda, 'device_count', lambda: gpus)
    cfg = Config(dict(launcher='pytorch'))
    if fits:
        set_up_processes(cfg)
    else:
        with pytest.raises(UsageError, match='2 processes .* 1 GPU'):
            set_up_processes(cfg)
    # The rest is mmengine's.
    assert not joined
    assert 'model_wrapper_cfg' not in cfg
