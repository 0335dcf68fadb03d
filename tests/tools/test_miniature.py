"""The scenes ask what they say, and the report says what was measured."""
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2] / 'tools'))

import miniature  # noqa: E402


def symbols_of(images):
    """Which glyph each cell shows, ``(B, cells, cells)``."""
    p = miniature.PIXELS
    glyphs = torch.randn(
        miniature.SYMBOLS, 3, p, p, generator=torch.Generator().manual_seed(7))
    cells = images.unfold(2, p, p).unfold(3, p, p)  # (B, 3, h, w, p, p)
    cells = cells.permute(0, 2, 3, 1, 4, 5)[:, :, :, None]
    return (cells - glyphs).abs().flatten(4).sum(4).argmin(3)


@pytest.mark.parametrize('cells', [6, 9])
@pytest.mark.parametrize('question', miniature.QUESTIONS)
def test_answers_are_right(question, cells):
    images, answers = miniature.scenes(question, 150, cells,
                                       torch.Generator().manual_seed(0))
    third = cells // 3
    for symbols, answer in zip(symbols_of(images), answers):
        (y, x), = (symbols == 0).nonzero().tolist()
        if question == 'where':
            assert answer == y // third * 3 + x // third
        else:
            (dy, dx), = (symbols == 1).nonzero().tolist()
            step = dy - y, dx - x
            assert step == [(-1, 0), (1, 0), (0, -1), (0, 1)][answer]
    assert len(answers.unique()) == miniature.QUESTIONS[question]


def test_a_run_is_repeatable():
    runs = [miniature.train('where', 'sine', 3, 25) for _ in range(2)]
    assert runs[0] == runs[1]


def test_report(capsys):
    runs = {
        name: [
            dict(name=name, seed=s, accuracy=a, larger=a / 2, steps=steps)
            for s, a in enumerate((0.5, 0.6))
        ] for name, steps in (('PEG', 50), ('sine', 100), ('none', None))
    }
    args = Namespace(question='beside', seeds=2, steps=100)
    miniature.report(args, runs)
    out = capsys.readouterr().out
    assert 'chance is 25%' in out
    assert 'never' in out
    assert 'PEG - sine, to 90% (never counts as 100): -50.0 steps' in out
    assert '(-50.0 to -50.0)' in out
    assert 'PEG - none, 6x6: +0.0 points (+0.0 to +0.0), no difference' in out
