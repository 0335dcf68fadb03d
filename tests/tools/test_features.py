"""What people switch on, in two processes with DistributedDataParallel.

What is validated during training must be what is saved: processes have other
images and so other statistics of norms, and an average has its own.
"""
import json
from pathlib import Path

import forked_runs
import pytest
import torch

from mmpe.engine import allow_checkpoint_classes

EVENTFUL = Path(__file__).with_name('eventful.py')  # accumulates gradients
AS_IN_TRAINING = """
test_evaluator = dict(_delete_=True, type='forked_runs.Scores')
"""


@pytest.mark.parametrize('features, arguments', [
    ("""
model = dict(encoder=dict(num_cp=1))
custom_hooks = []
""", ['--amp']),
    ("""
custom_hooks = [dict(type='EMAHook'), dict(type='SyncBuffersHook')]
""", []),
    ("""
custom_hooks = [dict(type='EMAHook', update_buffers=True)]
""", ['--amp']),
], ids=['checkpointing', 'synced', 'averaged'])
def test_what_is_validated_is_what_is_saved(tmp_path, features, arguments):
    config = tmp_path / 'features.py'
    config.write_text(f'_base_ = {str(EVENTFUL)!r}' + AS_IN_TRAINING +
                      features)
    work_dir = tmp_path / 'run'
    forked_runs.run(2, tmp_path / 'train.log', 'train.py', config,
                    '--work-dir', work_dir, *arguments, '--cfg-options',
                    'train_cfg.max_epochs=1')
    dumped = (work_dir / 'features.py').read_text()
    assert 'find_unused_parameters=False' in dumped.replace(' ', '')
    assert ('BFloat16OptimWrapper' in dumped) == ('--amp' in arguments)

    forked_runs.run(1, tmp_path / 'test.log', 'test.py', config,
                    work_dir / 'epoch_1.pth', '--work-dir', work_dir)
    allow_checkpoint_classes()
    hub = torch.load(work_dir / 'epoch_1.pth')['message_hub']
    validated = hub['log_scalars']['val/scores'].data[0][-1]
    metrics = json.loads((work_dir / 'metrics.json').read_text())
    assert metrics['scores'] == validated
