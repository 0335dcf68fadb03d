"""Several machines, here two nodes on one; Slurm; and too few GPUs."""
import json
import os
import signal
import socket
import time
from pathlib import Path

import pytest
from test_launch import TINY, TOOLS, call, start


@pytest.fixture
def two_nodes(tmp_path):
    """Start a script on two nodes of one process each."""
    started = []

    def start_both(script, *args):
        with socket.socket() as sock:
            sock.bind(('127.0.0.1', 0))
            port = sock.getsockname()[1]
        nodes = [
            start(
                TOOLS / script,
                *args,
                NNODES='2',
                NODE_RANK=rank,
                PORT=str(port),
                OMP_NUM_THREADS='1') for rank in '01'
        ]
        started.extend(nodes)
        return nodes

    yield start_both
    for node in started:
        node.kill()


def child(process):
    path = Path(f'/proc/{process.pid}/task/{process.pid}/children')
    pid, = path.read_text().split()
    return int(pid)


def test_two_nodes(two_nodes, tmp_path):
    work_dir = tmp_path / 'run'
    nodes = two_nodes('dist_train.sh', TINY, 1, '--work-dir', work_dir,
                      '--cfg-options', 'train_cfg.max_epochs=1000')
    last = work_dir / 'last_checkpoint'
    while not last.exists() and all(node.poll() is None for node in nodes):
        time.sleep(0.1)
    os.kill(child(nodes[1]), signal.SIGKILL)
    killed = time.monotonic()
    outputs = [node.communicate(timeout=100)[0] for node in nodes]
    assert time.monotonic() - killed < 60
    assert all(node.returncode for node in nodes), outputs
    ends = ['\n'.join(output.splitlines()[-5:]) for output in outputs]
    assert 'peer' in ends[0]
    assert 'Signal 9 (SIGKILL)' in ends[1]

    nodes = two_nodes('dist_test.sh', TINY, last.read_text(), 1, '--work-dir',
                      work_dir)
    outputs = [node.communicate(timeout=100)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], outputs
    metrics = json.loads((work_dir / 'metrics.json').read_text())
    assert metrics['num_images'] == 7


def test_processes_end_with_a_launcher_that_is_killed(tmp_path):
    (tmp_path / 'tools').mkdir()
    (tmp_path / 'tools' / 'tool.py').write_text("""
import time
from mmengine.config import Config
import mmpe.engine.processes as processes
processes._join_gloo = lambda cfg: None
processes.set_up_processes(Config(dict(launcher='pytorch')))
print('ready', flush=True)
time.sleep(100)
""")
    job = start('bash', '-euc',
                'source "$1"; PYTHONPATH=$ROOT; ROOT=$2; launch 1 tool.py',
                'bash', TOOLS / 'launch.sh', tmp_path)
    said = []
    while 'ready\n' not in said:
        said.append(job.stdout.readline())
        assert said[-1], ''.join(said)
    job.kill()
    job.communicate(timeout=60)  # until no process holds its output open


@pytest.fixture
def path(tmp_path):
    """A PATH on which commands of one's own come first."""

    def command(name, text):
        (tmp_path / name).write_text(f'#!/usr/bin/env bash\n{text}\n')
        (tmp_path / name).chmod(0o755)
        return f'{tmp_path}:{os.environ["PATH"]}'

    return command


@pytest.mark.parametrize('visible, in_torch, starts', [
    (None, 2, False),
    (None, 0, True),  # a torch for CPUs
    ('', 2, True),
    ('0,1,2', 2, True),
    ('1', 1, False),
])
def test_more_processes_than_gpus(path, visible, in_torch, starts):
    path('nvidia-smi', 'echo "GPU 0: a"; echo "GPU 1: b"')
    path('python', f'if [[ $1 == -c ]]; then echo {in_torch}; '
         'else echo started; fi')
    env = {} if visible is None else dict(CUDA_VISIBLE_DEVICES=visible)
    unset = 'unset CUDA_VISIBLE_DEVICES; ' if visible is None else ''
    status, output = call(
        'bash', '-c', unset + '"$@"', 'bash', TOOLS / 'dist_train.sh', TINY,
        3, PYTHON='python', PATH=path('unused', ''), **env)
    if starts:
        assert (status, output) == (0, 'started\n')
    else:
        assert status == 2
        assert f'3 processes on this machine, but {in_torch} GPU' in output


SRUN = 'printf "%s\\n" "$@" "port ${MASTER_PORT:-}"'


def test_slurm_train(path):
    status, output = call(
        TOOLS / 'slurm_train.sh', 'gpus', 'my job', TINY, 'work dir', '--amp',
        PATH=path('srun', SRUN), GPUS='16', SRUN_ARGS='--time=60 --qos=low',
        PYTHON='python', PORT='29999')
    assert status == 0
    assert output.splitlines() == [
        '-p', 'gpus', '--job-name=my job', '--gres=gpu:8', '--ntasks=16',
        '--ntasks-per-node=8', '--cpus-per-task=5', '--kill-on-bad-exit=1',
        '--time=60', '--qos=low', 'python', '-u',
        str(TOOLS / 'train.py'),
        str(TINY), '--work-dir', 'work dir', '--amp', '--launcher', 'slurm',
        'port 29999'
    ]


def test_slurm_test(path, tmp_path):
    (tmp_path / 'last one.pth').touch()
    status, output = call(
        TOOLS / 'slurm_test.sh', 'gpus', 'job', TINY,
        tmp_path / 'last one.pth', PATH=path('srun', SRUN), GPUS='2',
        CPUS_PER_TASK='3')
    assert status == 0
    said = output.splitlines()
    assert '--gres=gpu:2' in said and '--cpus-per-task=3' in said
    assert said[-5:] == [
        str(TINY),
        str(tmp_path / 'last one.pth'), '--launcher', 'slurm', 'port '
    ]


@pytest.mark.parametrize('command, env, said', [
    (['slurm_train.sh', 'gpus', 'job', TINY], {}, 'usage: '),
    (['slurm_test.sh', 'gpus', 'job', TINY, 'no.pth'], {}, 'no.pth'),
    (['slurm_train.sh', 'gpus', 'job', 'no.py', 'dir'], {}, 'no.py'),
    (['slurm_train.sh', 'gpus', 'job', TINY, 'dir'], {'GPUS': '0'}, 'GPUS'),
])
def test_what_is_typed_wrong(path, command, env, said):
    status, output = call(
        TOOLS / command[0], *command[1:], PATH=path('srun', SRUN), **env)
    assert status == 2
    assert said in output.splitlines()[0]
