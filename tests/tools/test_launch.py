"""A real training and test in two processes, through the scripts users type."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from mmpe.engine import allow_checkpoint_classes

TOOLS = Path(__file__).parents[2] / 'tools'
TINY = Path(__file__).with_name('tiny_detr.py')


def environment():
    """Of a shell in which nothing is set that these tests are about."""
    names = ('PORT', 'NNODES', 'NODE_RANK', 'MASTER_ADDR', 'OMP_NUM_THREADS',
             'RANK', 'WORLD_SIZE', 'LOCAL_RANK')
    env = {k: v for k, v in os.environ.items() if k not in names}
    # The CPU path, wherever the tests run.
    env.update(
        PYTHON=sys.executable,
        PYTHONPATH=str(TOOLS.parent),
        CUDA_VISIBLE_DEVICES='')
    return env


def start(*command, **env):
    return subprocess.Popen(
        [str(word) for word in command],
        env={
            **environment(),
            **env
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True)


def call(*command, **env):
    """Run it to its end; return the exit status and all that it printed."""
    process = start(*command, **env)
    output, _ = process.communicate(timeout=300)
    return process.returncode, output


def succeed(*command, **env):
    status, output = call(*command, **env)
    assert status == 0, output
    return output


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """Config, work dir and log of a training in two processes, under paths
    with spaces."""
    folder = tmp_path_factory.mktemp('a run')
    config = folder / 'tiny detr.py'
    config.write_text(f'_base_ = {str(TINY)!r}\n')
    work_dir = folder / 'work dir'
    log = succeed(TOOLS / 'dist_train.sh', config, 2, '--work-dir', work_dir,
                  '--cfg-options', 'model.positional_encoding.0.scale=3.0',
                  'optim_wrapper.clip_grad.max_norm=0.1')
    return config, work_dir, log


def test_both_processes_train(trained):
    _, work_dir, log = trained
    allow_checkpoint_classes()
    checkpoint = torch.load(work_dir / 'epoch_1.pth')
    # Seven images at two a process: two steps, which one process has not.
    assert checkpoint['meta']['iter'] == 2
    assert 'Distributed training: True' in log
    dumped = (work_dir / 'tiny detr.py').read_text()
    assert 'scale=3.0' in dumped and 'max_norm=0.1' in dumped


def test_both_processes_test(trained):
    config, work_dir, _ = trained
    log = succeed(TOOLS / 'dist_test.sh', config, work_dir / 'epoch_1.pth', 2,
                  '--work-dir', work_dir, '--out', work_dir / 'dumped.pkl')
    assert 'Epoch(test) [4/4]' in log  # of seven images, one at a time
    predictions = json.loads((work_dir / 'predictions.bbox.json').read_text())
    assert len({one['image_id'] for one in predictions}) == 7
    metrics = json.loads((work_dir / 'metrics.json').read_text())
    assert 0 <= metrics['coco/bbox_mAP'] <= 1
    assert metrics['num_images'] == 7
    assert metrics['num_detections'] == len(predictions)
    assert metrics['checkpoint'] == str(work_dir / 'epoch_1.pth')
    assert (work_dir / 'dumped.pkl').is_file()


def test_config_that_the_run_left_resumes_alone_and_in_bfloat16(trained):
    _, work_dir, _ = trained
    # On a busy machine a second thread more than doubles the work.
    log = succeed(
        sys.executable, TOOLS / 'train.py', work_dir / 'tiny detr.py',
        '--work-dir', work_dir, '--amp', '--auto-scale-lr', '--resume',
        '--cfg-options', 'train_cfg.max_epochs=2', OMP_NUM_THREADS='1')
    assert 'resumed epoch: 1' in log
    checkpoint = torch.load(work_dir / 'epoch_2.pth')
    assert all(
        weight.dtype == torch.float32
        for weight in checkpoint['state_dict'].values()
        if weight.is_floating_point())


@pytest.mark.parametrize('command, said', [
    (['dist_train.sh'], 'usage: '),
    (['dist_train.sh', TINY], 'usage: '),
    (['dist_train.sh', 'no config.py', 2], 'no config.py'),
    (['dist_train.sh', TINY, 0], 'GPUS'),
    (['dist_train.sh', TINY, 'two'], 'two'),
    (['dist_train.sh', TINY, '--amp'], '--amp'),
    (['dist_test.sh', TINY, 2], 'usage: '),
    (['dist_test.sh', TINY, 'no.pth', 2], 'no.pth'),
    (['dist_test.sh', TINY, 'https://somewhere/zoo.pth', '1.5'], '1.5'),
])
def test_what_is_typed_wrong(command, said):
    status, output = call(TOOLS / command[0], *command[1:])
    assert status == 2
    assert said in output.splitlines()[0]


@pytest.mark.parametrize('env, said', [
    (dict(PORT='http'), 'PORT'),
    (dict(NNODES='0'), 'NNODES'),
    (dict(NNODES='2', NODE_RANK='2'), 'NODE_RANK 2'),
])
def test_what_is_wrong_in_the_environment(env, said):
    status, output = call(TOOLS / 'dist_train.sh', TINY, 2, **env)
    assert status == 2
    assert said in output.splitlines()[0]


@pytest.fixture
def launch(tmp_path):
    """Start ``code`` as the scripts start their tools."""
    (tmp_path / 'tools').mkdir()

    def make(code, *args, **env):
        (tmp_path / 'tools' / 'tool.py').write_text(code)
        return start(
            'bash', '-euc', 'source "$1"; PYTHONPATH=$ROOT; ROOT=$2; '
            'launch 2 tool.py "${@:3}"', 'bash', TOOLS / 'launch.sh', tmp_path,
            *args, **env)

    return make


def test_jobs_started_together_get_two_ports(launch):
    # One write a line, or those of two processes could mix.
    code = ('import os, sys, time; time.sleep(1); '
            'line = "|".join([os.environ["MASTER_PORT"], '
            'os.environ["OMP_NUM_THREADS"], *sys.argv[1:]]); '
            'os.write(1, f"{line}\\n".encode())')
    jobs = [launch(code, 'an argument'), launch(code, OMP_NUM_THREADS='7')]
    outputs = [job.communicate(timeout=100)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0], outputs
    first, second = [
        [line.split('|') for line in output.splitlines() if '|' in line]
        for output in outputs
    ]
    assert first[0][0] == first[1][0] != second[0][0] == second[1][0]
    assert first[0][1] == str(max(len(os.sched_getaffinity(0)) // 2, 1))
    assert first[0][2:] == ['--launcher', 'pytorch', 'an argument']
    assert second[0][1] == '7'


def test_first_cause_is_on_the_last_lines(launch):
    code = """
import os, time
from mmpe.engine.command_line import run
def main():
    if os.environ['RANK'] == '0':
        time.sleep(100)
    raise ValueError('the first cause')
run(main)
"""
    job = launch(code)
    output, _ = job.communicate(timeout=60)
    assert job.returncode != 0
    assert 'ValueError: the first cause' in ''.join(output.splitlines()[-5:])


@pytest.mark.parametrize('env, expected', [
    (dict(PYTHON='/my/python'), '/my/python'),
    (dict(VIRTUAL_ENV='/active'), '{bin}/python'),
    (dict(CONDA_PREFIX='/active'), '{bin}/python'),
    (dict(), '{root}/.venv/bin/python'),
])
def test_which_python(tmp_path, env, expected):
    for path in (tmp_path / 'bin', tmp_path / '.venv' / 'bin'):
        path.mkdir(parents=True)
        (path / 'python').touch(mode=0o755)
    names = dict(PYTHON='', VIRTUAL_ENV='', CONDA_PREFIX='')
    path = f'{tmp_path}/bin:{os.environ["PATH"]}'
    output = succeed('bash', '-euc',
                     'source "$1"; ROOT=$2; PATH=$3; find_python', 'bash',
                     TOOLS / 'launch.sh', tmp_path, path, **{
                         **names,
                         **env
                     })
    assert output.strip() == expected.format(
        bin=tmp_path / 'bin', root=tmp_path)
