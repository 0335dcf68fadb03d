"""Compare the speed and memory of attention alone, over a range of grids.

    python tools/benchmark_attention.py rpe-2.0-product-ctx-1-k \
        rpe-2.0-product-ctx-1-qkv --naive --plot attention.png

Flags are those of iRPE's code. What all are compared with is PyTorch's fused
attention without an encoding.
"""
import json
import re
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Callable, Dict, List, Tuple

from benchmark_timing import (Step, add_arguments, aligned, check_folder,
                              environment, machine, measure, peak_bytes,
                              summarize, use_arguments)

import torch
import torch.nn.functional as F
from torch import Tensor

from mmpe.engine.command_line import UsageError, run
from mmpe.layers.term_attention import attend, dense_attention
from mmpe.position import BucketTerm, ImageRPE, TokenGrid

NUMBERS = 2**29
"""Naive forms that would make a tensor with more are left out."""


def parse_args() -> Namespace:
    parser = ArgumentParser(
        description='Compare the speed and memory of attention alone')
    parser.add_argument(
        'flags',
        nargs='*',
        metavar='FLAG',
        default=['rpe-2.0-product-ctx-1-k'],
        help='encodings such as rpe-2.0-product-ctx-1-k (the default)')
    parser.add_argument(
        '--grids',
        nargs='+',
        metavar='HEIGHTxWIDTH',
        default=['14x14', '20x27', '25x34', '38x50'])
    parser.add_argument(
        '--mode', choices=['forward', 'train'], default='train')
    parser.add_argument('--heads', type=int, default=8)
    parser.add_argument('--dim', type=int, default=32, help='of each head')
    parser.add_argument(
        '--dropout', type=float, default=0., help='of attention weights')
    parser.add_argument(
        '--naive',
        action='store_true',
        help='also all pairs at once and, on k, a vector for each pair, where '
        'they fit')
    parser.add_argument(
        '--plot', type=Path, help='picture of time against tokens')
    add_arguments(parser)
    args = parser.parse_args()
    use_arguments(args)
    if min(args.heads, args.dim) < 1:
        raise UsageError('sizes and numbers must be positive')
    args.grids = [_grid(text) for text in args.grids]
    for flag in args.flags:
        try:
            ImageRPE.from_flag(flag)
        except ValueError as error:
            raise UsageError(str(error)) from error
    if args.plot:
        check_folder('--plot', args.plot)
    return args


def _grid(text: str) -> Tuple[int, int]:
    match = re.fullmatch(r'([1-9]\d*)x([1-9]\d*)', text)
    if not match:
        raise UsageError(f'--grids: {text!r} is no HEIGHTxWIDTH')
    return int(match[1]), int(match[2])


def make_terms(flag: str, shape: Tuple[int, int],
               args: Namespace) -> List[BucketTerm]:
    item = ImageRPE.from_flag(flag)
    del item['type']
    rpe = ImageRPE(
        **item,
        init='xavier',
        embed_dims=args.heads * args.dim,
        num_heads=args.heads,
        num_layers=1).to(args.device)
    return rpe.terms(
        0, TokenGrid((shape, ), device=torch.device(args.device)))


def pair_vectors(q: Tensor, k: Tensor, v: Tensor, term: BucketTerm,
                 dropout: float) -> Tensor:
    """What the equation says: a vector for each pair of tokens."""
    q = q * q.shape[-1]**-0.5
    vectors = term.table[0].T[term.map.all_ids]
    logits = q @ k.transpose(-2, -1) + torch.einsum('bhid,ijd->bhij', q,
                                                    vectors)
    return torch.dropout(logits.softmax(-1), dropout, dropout > 0) @ v


def variants(shape: Tuple[int, int],
             args: Namespace) -> Dict[str, Callable[..., Tensor]]:
    """Functions of q, k and v by name, the fused attention first."""
    tokens, dropout = shape[0] * shape[1], args.dropout
    out = {
        'fused, no encoding':
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, dropout_p=dropout)
    }
    pairs = args.batch * args.heads * tokens**2
    for flag in args.flags:
        terms = make_terms(flag, shape, args)
        out[flag] = _bind(attend, mask=None, dropout=dropout, terms=terms)
        if args.naive and pairs <= NUMBERS:
            out[f'{flag}, all pairs at once'] = _all_pairs(terms, dropout)
        if (args.naive and flag.endswith('ctx-1-k') and len(terms) == 1
                and args.dim * tokens**2 <= NUMBERS):
            out[f'{flag}, a vector per pair'] = _bind(
                pair_vectors, term=terms[0], dropout=dropout)
    return out


def _bind(function: Callable[..., Tensor], **kwargs) -> Callable[..., Tensor]:
    return lambda q, k, v: function(q, k, v, **kwargs)


def _all_pairs(terms: List[BucketTerm],
               dropout: float) -> Callable[..., Tensor]:

    def function(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scale = q.shape[-1]**-0.5
        scaled = q * scale
        return dense_attention(scaled, k, v, scaled, k, scale, None, dropout,
                               terms)

    return function


def make_step(function: Callable[..., Tensor], shape: Tuple[int, int],
              args: Namespace) -> Step:
    generator = torch.Generator().manual_seed(0)
    size = args.batch, args.heads, shape[0] * shape[1], args.dim
    inputs = [
        torch.randn(size, generator=generator).to(args.device)
        for _ in range(4)
    ]
    train = args.mode == 'train'

    def prepare() -> Callable[[], None]:
        q, k, v = (x.clone().requires_grad_(train) for x in inputs[:3])

        @torch.set_grad_enabled(train)
        def work() -> None:
            out = function(q, k, v)
            if train:
                out.backward(inputs[3])

        return work

    return prepare


def table(results: List[Dict]) -> str:
    rows = [('grid, attention', 'median', 'ratio', 'round by round', 'peak')]
    for r in results:
        low, high = r['paired_quartiles']
        rows.append(
            (f"{r['grid']}, {r['name']}", f"{1e3 * r['median']:.1f} ms",
             f"{r['ratio']:.2f}",
             f"{r['paired_ratio']:.2f} ({low:.2f} to {high:.2f})",
             f"{r['peak_bytes'] / 2**20:.1f} MiB"))
    return aligned(rows)


def plot(results: List[Dict], args: Namespace, env: Dict) -> None:
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib import pyplot as plt
    fig, axes = plt.subplots(1, 2, figsize=(10, 5.5), layout='constrained')
    for name in dict.fromkeys(r['name'] for r in results):
        own = sorted((r for r in results if r['name'] == name),
                     key=lambda r: r['tokens'])
        tokens = [r['tokens'] for r in own]
        axes[0].plot(tokens, [1e3 * r['median'] for r in own], '.-',
                     label=name)
        axes[1].plot(tokens, [r['peak_bytes'] / 2**20 for r in own], '.-')
    labels = {r['tokens']: r['grid'] for r in results}
    for axis, title in zip(axes, ('time, ms', 'peak memory, MiB')):
        axis.set(
            xscale='log', yscale='log', title=title, xlabel='grid (tokens)')
        axis.set_xticks([*labels], [
            f'{grid}\n({tokens})' for tokens, grid in labels.items()
        ])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    fig.legend(loc='outside lower center', ncols=2, fontsize=8)
    fig.suptitle(f'{args.mode}, batch of {args.batch}, {args.heads} heads of '
                 f'{args.dim}, {machine(env)}', fontsize=9)
    fig.savefig(args.plot, dpi=150)


def main() -> None:
    args = parse_args()
    env = environment(args)
    results, steps = [], []
    for shape in args.grids:
        functions = variants(shape, args)
        own = [make_step(f, shape, args) for f in functions.values()]
        times = measure(own, args)
        steps += own
        results += [
            dict(
                grid='{}x{}'.format(*shape),
                tokens=shape[0] * shape[1],
                name=name,
                seconds=t.tolist(),
                **summary)
            for name, t, summary in zip(functions, times, summarize(times))
        ]
    # Last, for what is profiled once makes all that follows slower.
    for result, step in zip(results, steps):
        result['peak_bytes'] = peak_bytes(step, args.device)
    print(f'{args.mode}, batch of {args.batch}, {args.heads} heads of '
          f'{args.dim}, dropout {args.dropout}, {args.repeats} rounds, '
          f'{args.clock} time\n{machine(env)}\n\n{table(results)}\n\n'
          "ratio: time over the fused attention's of that grid, of the "
          "medians; then the median (and quartiles) of the rounds' ratios.\n"
          'peak: tensor memory that a step takes on top of its inputs; in '
          'training it holds their gradients.')
    if args.plot:
        plot(results, args, env)
    if args.json:
        settings = {k: str(v) if isinstance(v, Path) else v
                    for k, v in vars(args).items()}
        args.json.write_text(
            json.dumps(
                dict(settings=settings, environment=env, results=results),
                indent=1))


if __name__ == '__main__':
    run(main)
