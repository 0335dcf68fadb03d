"""Compare the speed and memory of models, side by side.

    python tools/benchmark.py configs/detr/detr_r50_{none,peg}_8xb4-50e_coco.py
    python tools/benchmark.py mmdet::detr/detr_r50_8xb2-150e_coco.py \
        configs/detr/detr_r50_sine_8xb4-50e_coco.py --part encoder --dropout 0

The variants take turns, one step each a round, so that whatever else the
machine does hits them alike. Images, boxes and weights are random.
"""
import json
import os
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Dict, List

from benchmark_steps import (Step, build_model, make_step, random_batch,
                             read_config)

import mmcv
import mmdet
import numpy as np
import torch
from mmengine.logging import MMLogger
from mmengine.utils import ProgressBar
from torch.profiler import ProfilerActivity, profile

import mmpe
from mmpe.engine.command_line import UsageError, run

CLOCKS = dict(wall=time.perf_counter, cpu=time.process_time)


def parse_args() -> Namespace:
    parser = ArgumentParser(
        description='Compare the speed and memory of models, side by side')
    parser.add_argument(
        'configs',
        nargs='+',
        metavar='CONFIG',
        help="config files, or MMDetection's as mmdet::detr/...; the first "
        'is what the others are compared with')
    parser.add_argument(
        '--part', choices=['model', 'encoder'], default='model')
    parser.add_argument(
        '--mode',
        choices=['forward', 'train'],
        default='train',
        help='train is forward, backward and, for the whole model, the '
        "optimizer's step")
    parser.add_argument(
        '--size',
        type=int,
        nargs=2,
        default=[800, 1088],
        metavar=('HEIGHT', 'WIDTH'))
    parser.add_argument('--batch', type=int, default=2, help='images a step')
    parser.add_argument(
        '--padded',
        action='store_true',
        help='images of different sizes, none of which fills the canvas, so '
        'that there are masks')
    parser.add_argument(
        '--dropout',
        type=float,
        help='probability for every dropout that has one above zero in its '
        "config; the configs' own if not given")
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
    args = parser.parse_args()
    check(args)
    return args


def check(args: Namespace) -> None:
    if min(*args.size, args.batch, args.repeats, args.threads or 1) < 1:
        raise UsageError('sizes and numbers must be positive')
    if args.padded and args.batch < 2:
        raise UsageError('--padded needs a --batch of at least 2: one image '
                         'is its own canvas')
    if args.json and not args.json.parent.is_dir():
        raise UsageError(f'--json: no such folder: {args.json.parent}')


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


def names(configs: List[str]) -> List[str]:
    """File names, with a number where one comes again."""
    stems = [Path(config).stem for config in configs]
    return [
        stem if stem not in stems[:i] else
        f'{stem} ({stems[:i].count(stem) + 1})'
        for i, stem in enumerate(stems)
    ]


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


def report(args: Namespace, env: Dict, variants: List[Dict]) -> str:
    height, width = args.size
    return '\n'.join([
        f'{args.part}, {args.mode}, batch of {args.batch} at {height}x{width}'
        f"{', padded' if args.padded else ''}, dropout "
        f"{'of the configs' if args.dropout is None else args.dropout}, "
        f'{args.repeats} rounds, {args.clock} time',
        f"{env['device']}, {env['threads']} threads, torch {env['torch']}, "
        f"load {env['load']:.1f} on {env['cores']} cores",
        '',
        table(variants),
        '',
        "ratio: time over the first variant's, of the medians; then the "
        "median (and quartiles) of the rounds' ratios.",
        'peak: tensor memory that a step takes on top of weights, optimizer '
        'state and inputs.',
    ])


def table(variants: List[Dict]) -> str:
    rows = [('variant', 'parameters', 'median', 'ratio', 'round by round',
             'peak')]
    for v in variants:
        low, high = v['paired_quartiles']
        rows.append((v['name'], f"{v['parameters']:,}",
                     f"{1e3 * v['median']:.1f} ms", f"{v['ratio']:.3f}",
                     f"{v['paired_ratio']:.3f} ({low:.3f} to {high:.3f})",
                     f"{v['peak_bytes'] / 2**20:.1f} MiB"))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return '\n'.join(
        '  '.join([row[0].ljust(widths[0])] +
                  [cell.rjust(w) for cell, w in zip(row[1:], widths[1:])])
        for row in rows)


def main() -> None:
    args = parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    # MMEngine would say of each parameter how it was initialised.
    MMLogger.get_instance('benchmark', log_level='ERROR')
    env = environment(args)
    configs = [read_config(path) for path in args.configs]
    models = [build_model(cfg, args) for cfg in configs]
    batch = random_batch(args)
    steps = [make_step(cfg, model, batch, args)
             for cfg, model in zip(configs, models)]

    times = measure(steps, args)
    variants = [
        dict(
            name=name,
            config=path,
            parameters=sum(p.numel() for p in model.parameters()),
            peak_bytes=peak_bytes(step, args.device),
            seconds=t.tolist(),
            **summary)
        for name, path, model, step, t, summary in zip(
            names(args.configs), args.configs, models, steps, times,
            summarize(times))
    ]
    print(report(args, env, variants))
    if args.json:
        settings = {k: v for k, v in vars(args).items() if k != 'json'}
        args.json.write_text(
            json.dumps(
                dict(settings=settings, environment=env, variants=variants),
                indent=1))


if __name__ == '__main__':
    run(main)
