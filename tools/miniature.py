"""The papers' points in miniature: which encodings learn which question.

    python tools/miniature.py where        # in which ninth of the scene is A?
    python tools/miniature.py beside       # on which side of C is D?

Scenes are 6x6 cells with a symbol each; a vision transformer of 3 blocks and
width 48 answers one question about them. Shown are the accuracy on new scenes,
of 6x6 and of 9x9 cells, and after how many steps 90% are right; means over
seeds, and intervals of the differences between pairs of runs with one seed.
It says how encodings behave on this toy, not on images.
"""
import json
import os
from argparse import ArgumentParser, Namespace
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Dict, List, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from mmengine.logging import MMLogger
from torch import Tensor, nn

from mmpe.backbones import VisionTransformer
from mmpe.engine.command_line import UsageError, run

PIXELS = 4  # of a cell's side
SYMBOLS = 8
CELLS = 6
ARCH = dict(
    embed_dims=48, num_layers=3, num_heads=3, feedforward_channels=96)
TABLE = dict(type='mmpe.PositionEmbedding')
ENCODINGS = {
    'none': [],
    'sine': [dict(type='mmpe.SinePositionalEncoding')],
    'table, std 1': [dict(TABLE, std=1.)],
    'table, std 0.02': [TABLE],
    'table and LaPE': [TABLE, dict(type='mmpe.LaPE')],
    'PEG': [dict(type='mmpe.PEG')],
}
QUESTIONS = dict(where=9, beside=4)
"""How many answers each has."""
# Pairs that the papers speak of: the first is said to be better.
PAIRS = dict(
    where=[('table and LaPE', 'table, std 0.02'),
           ('table and LaPE', 'table, std 1'), ('sine', 'none'),
           ('table, std 1', 'none'), ('table and LaPE', 'none')],
    beside=[('PEG', 'sine'), ('PEG', 'none'), ('sine', 'none')])
T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365,
       9: 2.306, 10: 2.262}
"""Student's t for a 95% interval of n differences."""


def scenes(question: str, count: int, cells: int,
           generator: torch.Generator) -> Tuple[Tensor, Tensor]:
    """Images ``(B, 3, H, W)`` and answers."""
    glyphs = torch.randn(
        SYMBOLS, 3, PIXELS, PIXELS, generator=torch.Generator().manual_seed(7))
    # 0 is A or C, 1 is D; each is there once.
    symbols = torch.randint(
        2, SYMBOLS, (count, cells, cells), generator=generator)
    rows = torch.arange(count)
    if question == 'where':
        y, x = torch.randint(cells, (2, count), generator=generator)
        answers = y * 3 // cells * 3 + x * 3 // cells
    else:
        y, x = torch.randint(1, cells - 1, (2, count), generator=generator)
        answers = torch.randint(4, (count, ), generator=generator)
        sides = torch.tensor([[-1, 0], [1, 0], [0, -1], [0, 1]])[answers]
        symbols[rows, y + sides[:, 0], x + sides[:, 1]] = 1
    symbols[rows, y, x] = 0
    images = glyphs[symbols]  # (B, cells, cells, 3, P, P)
    return images.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3), answers


def make_model(items: List[dict], answers: int) -> nn.Module:
    backbone = VisionTransformer(
        ARCH,
        CELLS * PIXELS,
        PIXELS,
        positional_encoding=items,
        with_cls_token=False,
        out_type='avg_featmap')
    backbone.init_weights()
    return nn.ModuleList([backbone, nn.Linear(ARCH['embed_dims'], answers)])


def answer(model: nn.Module, images: Tensor) -> Tensor:
    return model[1](model[0](images)[0])


@torch.no_grad()
def accuracy(model: nn.Module, question: str, cells: int, seed: int) -> float:
    generator = torch.Generator().manual_seed(10**6 + seed)
    images, answers = scenes(question, 512, cells, generator)
    model.eval()
    right = (answer(model, images).argmax(1) == answers).float().mean()
    model.train()
    return float(right)


def train(question: str, name: str, seed: int, steps: int) -> Dict:
    """Train one model; runs of a seed see the same scenes."""
    torch.set_num_threads(1)
    if not MMLogger.check_instance_created('miniature'):
        # MMEngine would say of each parameter how it was initialised.
        MMLogger.get_instance('miniature', log_level='ERROR')
    torch.manual_seed(seed)
    model = make_model(ENCODINGS[name], QUESTIONS[question])
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min(1, (i + 1) / 50))
    generator = torch.Generator().manual_seed(seed)
    learned = None
    for i in range(steps):
        images, answers = scenes(question, 64, CELLS, generator)
        loss = F.cross_entropy(answer(model, images), answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if (i + 1) % 25 == 0 and learned is None and accuracy(
                model, question, CELLS, seed) >= 0.9:
            learned = i + 1
    return dict(
        name=name,
        seed=seed,
        accuracy=accuracy(model, question, CELLS, seed),
        larger=accuracy(model, question, 9, seed),
        steps=learned)


def difference(runs: Dict, first: str, second: str, key: str) -> str:
    """Mean and 95% interval of paired differences."""
    values = np.array(
        [a[key] - b[key] for a, b in zip(runs[first], runs[second])], float)
    n = len(values)
    half = T95[n] * values.std(ddof=1) / n**0.5
    scale, unit = (1, ' steps') if key == 'steps' else (100, ' points')
    low, high = (scale * (values.mean() + s * half) for s in (-1, 1))
    return (f'{scale * values.mean():+.1f}{unit} ({low:+.1f} to {high:+.1f})'
            f'{", no difference shown" if low <= 0 <= high else ""}')


def report(args: Namespace, runs: Dict[str, List[Dict]]) -> None:
    chance = 100 / QUESTIONS[args.question]
    print(f'\n{args.question}, {args.seeds} seeds, {args.steps} steps of 64 '
          f'scenes; chance is {chance:.0f}%\n')
    print(f"{'':16}{'6x6':>8}{'9x9':>8}{'90% after':>12}")
    for name, own in runs.items():
        done = [r['steps'] for r in own if r['steps']]
        after = f'{np.mean(done):.0f}' if len(done) == len(own) else (
            f'{len(done)} of {len(own)}' if done else 'never')
        print(f"{name:16}{100 * np.mean([r['accuracy'] for r in own]):7.1f}%"
              f"{100 * np.mean([r['larger'] for r in own]):7.1f}%{after:>12}")
    print('\nDifferences, with 95% intervals over seeds:')
    for first, second in PAIRS[args.question]:
        keys = dict(accuracy='6x6', larger='9x9')
        if args.question == 'where':
            keys.pop('larger')
        if any(r['steps'] for r in runs[second]):
            keys['steps'] = f'to 90% (never counts as {args.steps})'
        counted = {
            name: [dict(r, steps=r['steps'] or args.steps) for r in own]
            for name, own in runs.items()
        }
        for key, label in keys.items():
            print(f'  {first} - {second}, {label}: '
                  f'{difference(counted, first, second, key)}')


def main() -> None:
    parser = ArgumentParser(description="The papers' points in miniature")
    parser.add_argument('question', choices=list(QUESTIONS))
    parser.add_argument('--seeds', type=int, default=5)
    parser.add_argument('--steps', type=int, default=1000)
    parser.add_argument('--json', type=Path, help='where to write every run')
    args = parser.parse_args()
    if args.seeds not in T95 or args.steps < 25:
        raise UsageError('--seeds must be 2 to 10, --steps at least 25')
    names = [
        name for name in ENCODINGS
        if any(name in pair for pair in PAIRS[args.question])
    ]
    jobs = [(name, seed) for seed in range(args.seeds) for name in names]
    runs = {name: [] for name in names}
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        futures = [
            pool.submit(train, args.question, name, seed, args.steps)
            for name, seed in jobs
        ]
        for (name, seed), future in zip(jobs, futures):
            result = future.result()
            runs[name].append(result)
            print(f'{name}, seed {seed}: {100 * result["accuracy"]:.1f}%, '
                  f'9x9 {100 * result["larger"]:.1f}%, 90% after '
                  f'{result["steps"]} steps', flush=True)
    report(args, runs)
    if args.json:
        args.json.write_text(json.dumps(runs, indent=1))


if __name__ == '__main__':
    run(main)
