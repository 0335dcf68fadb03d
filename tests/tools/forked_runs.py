"""Runs of the tools in several processes, which need not import it all anew.

A server that has imported what the tools need forks each process; so a run of
a tiny model takes a second or two, and dozens can be killed and resumed. The
launch scripts themselves are tested elsewhere.
"""
import multiprocessing
import os
import runpy
import socket
import sys
import time
from pathlib import Path

import torch
from mmengine.config import config
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook

from mmpe.detectors import DETR
from mmpe.registry import MODELS

TOOLS = Path(__file__).parents[2] / 'tools'
TINY = Path(__file__).with_name('tiny_detr.py')

_server = multiprocessing.get_context('forkserver')
_server.set_forkserver_preload(['mmpe.detectors', 'mmpe.engine.runner'])


class Progress(Hook):
    """Appends a byte to a file at the begin and the end of each step, in the
    first process, so that whoever waits for a moment can see it come.

    Args:
        file (str): That file.
        hold (int): Wait to be killed before this epoch is validated.
    """

    def __init__(self, file, hold=0):
        self.file = file
        self.hold = hold

    def note(self):
        if os.environ['RANK'] == '0':
            with open(self.file, 'ab') as file:
                file.write(b'.')

    def before_train_iter(self, *args, **kwargs):
        self.note()

    def after_train_iter(self, *args, **kwargs):
        self.note()

    def before_val_epoch(self, runner):
        if runner.epoch == self.hold:
            self.note()
            time.sleep(100)


class Scores(BaseMetric):
    """The mean score of all detections, which any weight moves."""

    def process(self, data_batch, data_samples):
        for sample in data_samples:
            self.results.append(sample['pred_instances']['scores'].tolist())

    def compute_metrics(self, results):
        scores = sum(results, [])
        return dict(scores=sum(scores) / len(scores))


@MODELS.register_module()
class Seer(DETR):
    """Finds most objects, with the scores of a DETR that may be untrained;
    in one image it finds nothing."""

    def predict(self, *args, **kwargs):
        samples = super().predict(*args, **kwargs)
        for sample in samples:
            true = sample.gt_instances
            found = sample.pred_instances[:len(true) - len(true) // 4]
            if sample.img_id == 119828:
                found = found[:0]
            scale = true.bboxes.new_tensor(sample.scale_factor * 2)
            found.bboxes = true.bboxes[:len(found)] / scale
            found.labels = true.labels[:len(found)]
            sample.pred_instances = found
        return samples


def start(processes, log, tool, *args):
    """Start a tool; ``log`` takes what it prints. One process is started as
    without a launcher."""
    os.environ['CUDA_VISIBLE_DEVICES'] = ''  # before the server starts
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        port = sock.getsockname()[1]
    launcher = 'none' if processes == 1 else 'pytorch'
    jobs = []
    for rank in range(processes):
        env = dict(
            RANK=rank,
            LOCAL_RANK=rank,
            WORLD_SIZE=processes,
            LOCAL_WORLD_SIZE=processes,
            MASTER_ADDR='127.0.0.1',
            MASTER_PORT=port,
            OMP_NUM_THREADS=1)
        jobs.append(
            _server.Process(
                target=_be_a_process,
                args=(env, str(log), str(TOOLS / tool),
                      [*map(str, args), '--launcher', launcher])))
        jobs[-1].start()
    return jobs


def _be_a_process(env, log, tool, args):
    os.environ.update({name: str(value) for name, value in env.items()})
    torch.set_num_threads(1)
    # Laying out the config takes 70 % of a short run: at start and in each
    # checkpoint.
    config.FormatCode = lambda text, **kwargs: (text, True)
    with open(log, 'a') as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.argv = [tool, *args]
    runpy.run_path(tool, run_name='__main__')


def finish(jobs, log):
    """Wait for a run to end well; return what it printed."""
    for job in jobs:
        job.join(120)
    said = Path(log).read_text()
    assert [job.exitcode for job in jobs] == [0] * len(jobs), said
    return said


def run(processes, log, tool, *args):
    return finish(start(processes, log, tool, *args), log)
