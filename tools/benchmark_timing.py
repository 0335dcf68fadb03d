"""How the benchmarks measure: variants take turns, one step each a round."""
import mmpe  # isort: skip; first, for mmcv without ops
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Callable, Dict, List

import mmcv
import mmdet
import numpy as np
import torch
from mmengine.utils import ProgressBar
from torch.profiler import ProfilerActivity, profile

from mmpe.engine.command_line import UsageError

Step = Callable[[], Callable[[], None]]
"""Gets ready for one step and returns what is to be timed."""

CLOCKS = dict(wall=time.perf_counter, cpu=time.process_time)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument('--batch', type=int, default=2, help='images a step')
    parser.add_argument('--repeats', type=int, default=20, help='rounds timed')
    parser.add_argument('--warmup', type=int, default=2, help='rounds before')
    parser.add_argument('--threads', type=int, help='of PyTorch on the CPU')
    parser.add_argument(
        '--clock',
        choices=list(CLOCKS),
        default='wall',
        help='cpu counts only what this process computes; with --threads 1 '
        'it can be trusted on a busy machine')
    parser.add_argument(
        '--device', default='cuda' if torch.cuda.is_available() else 'cpu')
    parser.add_argument(
        '--json', type=Path, help='where to write every timing')


def use_arguments(args: Namespace) -> None:
    """Check what :func:`add_arguments` added, and set the threads."""
    if min(args.batch, args.repeats, args.threads or 1) < 1:
        raise UsageError('sizes and numbers must be positive')
    if args.json:
        check_folder('--json', args.json)
    if args.threads:
        torch.set_num_threads(args.threads)


def check_folder(option: str, path: Path) -> None:
    if not path.parent.is_dir():
        raise UsageError(f'{option}: no such folder: {path.parent}')


def measure(steps: List[Step], args: Namespace) -> np.ndarray:
    """Seconds of each variant in each round, ``(variants, rounds)``."""
    for _ in range(args.warmup):
        for step in steps:
            seconds(step, args)
    bar = ProgressBar(args.repeats, file=sys.stderr)
    rounds = []
    for _ in range(args.repeats):
        rounds.append([seconds(step, args) for step in steps])
        bar.update()
    print(file=sys.stderr)
    return np.array(rounds).T


def seconds(step: Step, args: Namespace) -> float:
    clock = CLOCKS[args.clock]
    work = step()
    synchronize(args.device)
    start = clock()
    work()
    synchronize(args.device)
    return clock() - start


def synchronize(device: str) -> None:
    if device.startswith('cuda'):
        torch.cuda.synchronize(device)


def peak_bytes(step: Step, device: str) -> int:
    """The most tensor memory at a time that a step takes, beyond what is held
    before it: weights, the optimizer's state, inputs."""
    work = step()
    if device.startswith('cuda'):
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        work()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        work()
    events = p.profiler.kineto_results.events()
    changes = [e.nbytes() for e in sorted(events, key=lambda e: e.start_ns())
               if e.name() == '[memory]']
    return int(np.cumsum([0, *changes]).max())


def summarize(times: np.ndarray) -> List[Dict]:
    """Of each variant; ratios are to the first, and ``paired`` ones are taken
    within each round."""
    return [
        dict(
            median=float(np.median(t)),
            ratio=float(np.median(t) / np.median(times[0])),
            paired_ratio=float(np.median(t / times[0])),
            paired_quartiles=np.percentile(t / times[0], [25, 75]).tolist())
        for t in times
    ]


def environment(args: Namespace) -> Dict:
    cuda = args.device.startswith('cuda')
    return dict(
        torch=torch.__version__,
        mmcv=mmcv.__version__,
        mmdet=mmdet.__version__,
        mmpe=mmpe.__version__,
        device=torch.cuda.get_device_name(args.device) if cuda else 'cpu',
        threads=torch.get_num_threads(),
        cores=os.cpu_count(),
        load=os.getloadavg()[0])


def machine(env: Dict) -> str:
    return (f"{env['device']}, {env['threads']} threads, torch "
            f"{env['torch']}, load {env['load']:.1f} on {env['cores']} cores")


def aligned(rows: List[List[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return '\n'.join(
        '  '.join([row[0].ljust(widths[0])] +
                  [cell.rjust(w) for cell, w in zip(row[1:], widths[1:])])
        for row in rows)
