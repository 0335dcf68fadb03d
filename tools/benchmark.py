"""Compare the speed and memory of models, side by side.

    python tools/benchmark.py configs/detr/detr_r50_{none,peg}_8xb4-50e_coco.py
    python tools/benchmark.py mmdet::detr/detr_r50_8xb2-150e_coco.py \
        configs/detr/detr_r50_sine_8xb4-50e_coco.py --part encoder --dropout 0

The variants take turns, one step each a round, so that whatever else the
machine does hits them alike. Images, boxes and weights are random.
"""
import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Dict, List

from benchmark_steps import build_model, make_step, random_batch, read_config
from benchmark_timing import (add_arguments, aligned, environment, machine,
                              measure, peak_bytes, summarize, use_arguments)
from mmengine.logging import MMLogger

from mmpe.engine.command_line import UsageError, run


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
    add_arguments(parser)
    args = parser.parse_args()
    check(args)
    return args


def check(args: Namespace) -> None:
    use_arguments(args)
    if min(args.size) < 1:
        raise UsageError('sizes and numbers must be positive')
    if args.padded and args.batch < 2:
        raise UsageError('--padded needs a --batch of at least 2: one image '
                         'is its own canvas')


def names(configs: List[str]) -> List[str]:
    """File names, with a number where one comes again."""
    stems = [Path(config).stem for config in configs]
    return [
        stem if stem not in stems[:i] else
        f'{stem} ({stems[:i].count(stem) + 1})'
        for i, stem in enumerate(stems)
    ]


def report(args: Namespace, env: Dict, variants: List[Dict]) -> str:
    height, width = args.size
    return '\n'.join([
        f'{args.part}, {args.mode}, batch of {args.batch} at {height}x{width}'
        f"{', padded' if args.padded else ''}, dropout "
        f"{'of the configs' if args.dropout is None else args.dropout}, "
        f'{args.repeats} rounds, {args.clock} time',
        machine(env),
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
    return aligned(rows)


def main() -> None:
    args = parse_args()
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
