"""Train, test and compare position encodings on 16 COCO images.

Called by tools/quickstart.sh. It overfits: each model is tested on the images
it was trained on.
"""
import importlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

import mmpe  # noqa: F401  first: it makes mmcv without ops importable
from mmengine.config import Config
from mmengine.registry import init_default_scope

from quickstart_pictures import save_label_pictures, save_pictures
from segmentation_sample import make_sample

OUT = Path(os.environ.get('QUICKSTART_OUT') or 'work_dirs/quickstart')
IMAGES = OUT / 'images16'  # of segmentation


@dataclass(frozen=True)
class Suite:
    """What is run and shown.

    Args:
        title (str): What is trained.
        minutes (int): How long that takes on two cores.
        configs (dict[str, str]): Configs by what they are called.
        metrics (dict[str, str]): By column, their names in metrics.json.
        digits (int): Of metrics.
        headline (str): The column that is shown after each run.
        options (list[str]): For all tools.
    """
    title: str
    minutes: int
    configs: dict
    metrics: dict
    digits: int
    headline: str
    options: tuple = ()


DETECTION = Suite(
    'a Deformable DETR', 7,
    {name: f'configs/quickstart/deformable-detr_r18_{name}_coco16.py'
     for name in ('sine', 'none', 'peg', 'irpe', 'lape')},
    {column: f'coco/bbox_{name}' for column, name in dict(
        AP='mAP', AP50='mAP_50', AP75='mAP_75', APS='mAP_s', APM='mAP_m',
        APL='mAP_l').items()}, 3, 'AP50')
SEGMENTATION = Suite(
    'a vision transformer for segmentation', 3,
    {name: f'configs/quickstart/segmentation/vit_{name}_coco16.py'
     for name in ('sine', 'peg')},
    dict(mIoU='mIoU', mAcc='mAcc', aAcc='aAcc'), 2, 'mIoU',
    ('--cfg-options', f'train_dataloader.dataset.dataset.data_root={IMAGES}',
     f'test_dataloader.dataset.data_root={IMAGES}'))
# For the time left: starting two processes to test 16 images.
TEST_SECONDS = 10


class StepFailed(Exception):
    """A step of the quickstart failed; the message says which and why."""


def launch(command, log):
    """Run a tool and yield the lines that it prints, which go to ``log`` too.

    Raises:
        StepFailed: If it fails, with the last of these lines.
    """
    print('   $', shlex.join(command), flush=True)
    # Two processes on the CPU, whatever else the machine has.
    env = dict(os.environ, PYTHON=sys.executable, CUDA_VISIBLE_DEVICES='')
    tail = deque(maxlen=20)
    with log.open('w') as file, subprocess.Popen(
        ['bash', *command], env=env, text=True, errors='replace',
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            for line in process.stdout:
                file.write(line)
                tail.append(line)
                yield line
        except BaseException:
            process.terminate()
            raise
    if process.returncode:
        raise StepFailed(f'{"".join(tail)}\nquickstart: error: {command[0]} '
                         f'failed with status {process.returncode}; its last '
                         f'lines are above, all of them in {log}')


def train(suite, config, run, runs_after):
    """Train into the folder ``run``, showing loss and time left."""
    start = time.time()
    epochs = Config.fromfile(config).max_epochs
    command = ['tools/dist_train.sh', config, '2', '--work-dir', str(run),
               *suite.options]
    for line in launch(command, run / 'train.log'):
        step = re.search(
            r'Epoch\(train\) +\[(\d+)\]\[ *(\d+)/(\d+)\].* '
            r'eta: (\d+):(\d+):(\d+) .* loss: ([\d.]+|nan|inf)', line)
        if not step:
            continue
        epoch, i, n, hours, minutes, seconds = map(int, step.groups()[:6])
        left = 3600 * hours + 60 * minutes + seconds + TEST_SECONDS
        all_left = left + runs_after * (time.time() - start + left)
        print(f'     step {(epoch - 1) * n + i:3}/{epochs * n}   loss '
              f'{float(step[7]):6.2f}   left: {clock(left)} for this run, '
              f'{clock(all_left)} for all', flush=True)


def test(suite, config, run):
    """Test the last checkpoint of the folder ``run``; return the metrics."""
    checkpoint = run / Path((run / 'last_checkpoint').read_text()).name
    command = ['tools/dist_test.sh', config, str(checkpoint), '2',
               '--work-dir', str(run), *suite.options]
    if suite is SEGMENTATION:
        labels = run / 'labels'
        labels.mkdir()  # the second process may need it before the first
        command.append(f'test_evaluator.output_dir={labels}')
    for _ in launch(command, run / 'test.log'):
        pass
    return json.loads((run / 'metrics.json').read_text())


def count_parameters(cfg):
    init_default_scope(cfg.default_scope)
    registry = importlib.import_module(f'{cfg.default_scope}.registry')
    model = registry.MODELS.build(cfg.model)
    return sum(weight.numel() for weight in model.parameters())


def as_written(encodings):
    """A list of encodings, the way a config writes it."""
    return '[{}]'.format(', '.join(
        'dict({})'.format(', '.join(f'{k}={v!r}' for k, v in item.items()))
        for item in encodings))


def clock(seconds):
    return f'{int(seconds) // 60}:{int(seconds) % 60:02}'


def print_table(rows):
    """Print rows of equal keys, with the numbers under their names."""
    table = [list(rows[0]), *([str(cell) for cell in row.values()]
                              for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table)]
    for name, *cells in table:
        print(name.ljust(widths[0]), *map(str.rjust, cells, widths[1:]),
              sep='   ')


def train_and_test(suite, name, runs_after):
    """Do one run; return its row of the table."""
    start = time.time()
    config, run = suite.configs[name], OUT / name
    run.mkdir(parents=True)
    cfg = Config.fromfile(config)
    host = cfg.model if suite is DETECTION else cfg.model.backbone
    number = len(suite.configs) - runs_after
    print(f'\n[{number}/{len(suite.configs)}] {name}: '
          f'positional_encoding={as_written(host.positional_encoding)}')
    train(suite, config, run, runs_after)
    metrics = test(suite, config, run)
    shown = {column: f'{metrics[metric]:.{suite.digits}f}'
             for column, metric in suite.metrics.items()}
    seconds = round(time.time() - start)
    print(f'     {suite.headline} {shown[suite.headline]} after {seconds} '
          'seconds')
    return dict(encoding=name, **shown,
                parameters=f'{count_parameters(cfg):,}', seconds=seconds)


def report():
    """Compare the runs as tools/report.py does; its path is printed last."""
    print('\nComparing the runs as those of a real training would be:')
    command = ['tools/report.py', *(str(OUT / name)
                                    for name in DETECTION.configs),
               '--out', str(OUT / 'report')]
    print('   $ python', shlex.join(command), flush=True)
    done = subprocess.run([sys.executable, '-W', 'ignore', *command])
    if done.returncode:
        raise StepFailed('quickstart: error: tools/report.py failed with '
                         f'status {done.returncode}')


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suite = SEGMENTATION if '--segmentation' in sys.argv[1:] else DETECTION
    configs = suite.configs
    print(f'Overfitting 16 COCO images by {suite.title} with {len(configs)} '
          'position encodings,\nin two processes on the CPU: about '
          f'{suite.minutes} minutes on two cores.')
    pictures = OUT / ('detections.png' if suite is DETECTION else 'labels.png')
    pictures.unlink(missing_ok=True)
    for folder in *(OUT / name for name in configs), IMAGES:
        shutil.rmtree(folder, ignore_errors=True)
    if suite is SEGMENTATION:
        make_sample(IMAGES)
    rows = [train_and_test(suite, name, len(configs) - i)
            for i, name in enumerate(configs, 1)]
    print()
    print_table(rows)
    print('\nThis is no benchmark: the images are those that the models were '
          'trained on.\nThat they are learned by heart shows that all parts '
          'work, not which encoding\nis better.\n')
    if suite is DETECTION:
        save_pictures(Config.fromfile(configs['sine']).images,
                      {name: OUT / name / 'predictions.bbox.json'
                       for name in configs}, pictures)
    else:
        save_label_pictures(
            IMAGES, {name: OUT / name / 'labels' for name in configs},
            pictures)
    print('Runs:', *(OUT / name for name in configs))
    print('Predictions beside the ground truth:', pictures)
    if suite is DETECTION:
        report()


if __name__ == '__main__':
    try:
        main()
    except StepFailed as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit('\nquickstart: stopped')
