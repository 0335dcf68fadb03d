"""An evaluation over several processes is that of one."""
import json

import forked_runs
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope

CONFIG = f"""
_base_ = {str(forked_runs.TINY)!r}
custom_imports = dict(imports=['forked_runs'])
model = dict(type='mmpe.Seer')
test_dataloader = dict(dataset=dict(indices=None))
"""


@pytest.fixture(scope='module')
def results(tmp_path_factory):
    """Predictions and metrics of a test over 16 images, by the number of
    processes."""
    folder = tmp_path_factory.mktemp('evaluation')
    config = folder / 'seer.py'
    config.write_text(CONFIG)
    init_default_scope('mmdet')
    torch.save(MODELS.build(Config.fromfile(config).model).state_dict(),
               folder / 'seer.pth')
    found = {}
    for processes in (1, 2, 3):
        work_dir = folder / str(processes)
        forked_runs.run(processes, folder / f'{processes}.log', 'test.py',
                        config, folder / 'seer.pth', '--work-dir', work_dir)
        found[processes] = [
            json.loads((work_dir / name).read_text())
            for name in ('predictions.bbox.json', 'metrics.json')
        ]
    return found


def test_one_process_finds_something(results):
    predictions, metrics = results[1]
    assert 0.1 < metrics['coco/bbox_mAP'] < 1
    # One image has none; it counts, and is in nobody's place.
    assert metrics['num_images'] == 16
    assert len({one['image_id'] for one in predictions}) == 15
    assert metrics['num_detections'] == len(predictions)


@pytest.mark.parametrize('processes', [2, 3])  # 3 doesn't divide 16
def test_more_processes_find_the_same(results, processes):
    predictions, metrics = results[processes]
    assert metrics == results[1][1]  # to the last digit
    assert sorted(map(str, predictions)) == sorted(map(str, results[1][0]))
