"""Compare the speed and memory of vision transformers, side by side.

    python tools/benchmark_backbone.py deit-small:PositionEmbedding \
        deit-small:PositionEmbedding,LaPE timm:deit_small_patch16_224

A backbone is ARCH:ENCODING[,ENCODING...] of mmpe or, where these packages are
installed, timm:NAME or mmpretrain:ARCH. Each ends in a class token. The first
is what the others are compared with; images and weights are random.
"""
import json
from argparse import ArgumentParser, Namespace
from typing import Callable

from benchmark_timing import (Step, add_arguments, aligned, environment,
                              machine, measure, peak_bytes, summarize,
                              use_arguments)

import torch
from torch import Tensor, nn

from mmpe.backbones import VisionTransformer
from mmpe.engine.command_line import UsageError, run


def parse_args() -> Namespace:
    parser = ArgumentParser(
        description='Compare the speed and memory of vision transformers')
    parser.add_argument(
        'backbones',
        nargs='+',
        metavar='BACKBONE',
        help='ARCH:ENCODING[,ENCODING...], such as deit-tiny:PEG for CPVT-Ti, '
        'or ARCH: for no encoding; timm:NAME and mmpretrain:ARCH where these '
        'are installed')
    parser.add_argument(
        '--mode', choices=['forward', 'train'], default='train')
    parser.add_argument('--size', type=int, default=224, help='of images')
    add_arguments(parser)
    args = parser.parse_args()
    use_arguments(args)
    if args.size < 16:
        raise UsageError('--size must be at least 16')
    return args


def build(spec: str, args: Namespace) -> nn.Module:
    """A module whose output is a class token, ``(B, C)``."""
    source, _, name = spec.partition(':')
    torch.manual_seed(0)
    try:
        if source == 'timm':
            import timm
            return timm.create_model(
                name, num_classes=0, img_size=args.size)
        if source == 'mmpretrain':
            from mmpretrain.models import VisionTransformer as Theirs
            return _Last(Theirs(arch=name, img_size=args.size))
    except ImportError as error:
        raise UsageError(f'{spec}: {error}') from error
    if ':' not in spec:
        raise UsageError(f'{spec!r} is no ARCH:ENCODING[,ENCODING...] such as '
                         'deit-tiny:PEG')
    items = [dict(type=f'mmpe.{item}') for item in name.split(',') if item]
    try:
        return _Last(
            VisionTransformer(
                source,
                args.size,
                positional_encoding=items,
                out_type='cls_token'))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f'{spec}: {error.args[0]}') from error


class _Last(nn.Module):
    """The last of a backbone's outputs."""

    def __init__(self, backbone: nn.Module) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, x: Tensor) -> Tensor:
        return self.backbone(x)[-1]


def make_step(model: nn.Module, args: Namespace) -> Step:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(
        args.batch, 3, args.size, args.size, generator=generator)
    x = x.to(args.device)
    train = args.mode == 'train'
    model.to(args.device).train(train)

    def prepare() -> Callable[[], None]:
        model.zero_grad()

        @torch.set_grad_enabled(train)
        def work() -> None:
            out = model(x)
            if train:
                out.backward(torch.ones_like(out))

        return work

    return prepare


def main() -> None:
    args = parse_args()
    env = environment(args)
    models = [build(spec, args) for spec in args.backbones]
    steps = [make_step(model, args) for model in models]
    times = measure(steps, args)
    rows = [('backbone', 'parameters', 'median', 'ratio', 'round by round',
             'peak')]
    results = []
    for spec, model, step, t, summary in zip(args.backbones, models, steps,
                                             times, summarize(times)):
        count = sum(p.numel() for p in model.parameters())
        peak = peak_bytes(step, args.device)
        low, high = summary['paired_quartiles']
        rows.append((spec, f'{count:,}', f"{1e3 * summary['median']:.1f} ms",
                     f"{summary['ratio']:.3f}",
                     f"{summary['paired_ratio']:.3f} ({low:.3f} to "
                     f'{high:.3f})', f'{peak / 2**20:.1f} MiB'))
        results.append(
            dict(name=spec, parameters=count, peak_bytes=peak,
                 seconds=t.tolist(), **summary))
    print(f'{args.mode}, batch of {args.batch} at {args.size}x{args.size}, '
          f'{args.repeats} rounds, {args.clock} time\n{machine(env)}\n\n'
          f'{aligned(rows)}')
    if args.json:
        args.json.write_text(
            json.dumps(dict(environment=env, results=results), indent=1))


if __name__ == '__main__':
    run(main)
