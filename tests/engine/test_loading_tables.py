"""Checkpoints with tables of another size, without the importing tool."""
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger

from mmpe.engine.runner import build_runner
from mmpe.engine.usage_error import UsageError

TINY = Path(__file__).parents[1] / 'tools' / 'tiny_detr.py'


def table(*grid):
    return [dict(type='mmpe.PositionEmbedding', grid=list(grid))]


@pytest.fixture
def train(tmp_path, caplog):
    """Trains up to an epoch; returns the runner and what was logged of
    tables."""

    def run(items, epochs, **settings):
        cfg = Config.fromfile(TINY)
        cfg.merge_from_dict(
            dict(
                work_dir=str(tmp_path),
                launcher='none',
                train_cfg=dict(max_epochs=epochs, val_interval=99),
                experiment_name=f'run{epochs}'))
        cfg.model.positional_encoding = items
        cfg.update(settings)
        caplog.clear()
        runner = build_runner(cfg, 'train')
        logger = MMLogger.get_current_instance()
        logger.addHandler(caplog.handler)
        try:
            runner.train()
        finally:
            logger.removeHandler(caplog.handler)
        lines = [r.message for r in caplog.records
                 if 'embedding.weight' in r.message and 'resized' in r.message]
        return runner, lines

    return run


NAME = 'positional_encoding.embedding.weight'


def test_resume(train):
    before, lines = train(table(2, 8), 1)
    assert lines == []
    runner, lines = train(table(4, 4), 2, resume=True)
    assert sorted(lines) == [
        f'{NAME} was resized: what the optimizer knew of it is left out',
        f'{NAME}: resized (bicubic) from grid 2x8 to grid 4x4'
    ]
    state = runner.optim_wrapper.optimizer.state
    steps = {name: int(state[p]['step'])
             for name, p in runner.model.named_parameters()}
    assert steps.pop(NAME) == 4  # of the second epoch
    assert set(steps.values()) == {8}


def test_resume_with_another_list(train):
    train([dict(type='mmpe.PEG')], 1)
    with pytest.raises(UsageError, match='load_from=... starts a new'):
        train([], 2, resume=True)


def test_load_from(train, tmp_path):
    before, _ = train(table(2, 8), 1)
    expected = torch.nn.functional.interpolate(
        before.model.positional_encoding.embedding.weight.permute(2, 0,
                                                                  1)[None],
        (4, 4), mode='bicubic')[0].permute(1, 2, 0)
    runner, lines = train(
        table(4, 4), 0, load_from=str(tmp_path / 'epoch_1.pth'))
    assert lines == [f'{NAME}: resized (bicubic) from grid 2x8 to grid 4x4']
    torch.testing.assert_close(
        runner.model.positional_encoding.embedding.weight, expected)
