"""The tools drive models of MMSegmentation, too."""
import json
import sys
from pathlib import Path

import forked_runs
import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(forked_runs.TOOLS))

from segmentation_sample import CLASSES, make_sample  # noqa: E402

TINY = Path(__file__).with_name('tiny_segmentor.py')


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp('segmentation')
    make_sample(folder / 'data', count=5)
    return folder


def run(folder, processes, tool, *arguments):
    forked_runs.run(
        processes, folder / f'{tool}{processes}.log', tool, TINY, *arguments,
        '--work-dir', folder / 'run', '--cfg-options', *[
            f'{phase}_dataloader.dataset.data_root={folder / "data"}'
            for phase in ('train', 'val', 'test')
        ])


def test_sample(folder):
    found = set()
    for file in (folder / 'data/annotations/training').iterdir():
        labels = np.asarray(Image.open(file))
        image = folder / 'data/images/training' / f'{file.stem}.jpg'
        assert Image.open(image).size == labels.shape[::-1]
        assert labels.min() >= 1 and labels.max() <= len(CLASSES)
        found |= {*labels.flatten().tolist()}
    assert len(found) > 2


def test_training_testing_and_resuming(folder):
    run(folder, 2, 'train.py', '--amp')
    work_dir = folder / 'run'
    assert (work_dir / 'epoch_2.pth').is_file()
    metrics = {}
    for processes in 1, 2:
        run(folder, processes, 'test.py', work_dir / 'epoch_2.pth')
        metrics[processes] = json.loads(
            (work_dir / 'metrics.json').read_text())
    assert metrics[1]['num_images'] == 5
    assert metrics[1]['mIoU'] > 0
    assert metrics[1] == metrics[2]
    (work_dir / 'epoch_2.pth').unlink()
    (work_dir / 'last_checkpoint').write_text(str(work_dir / 'epoch_1.pth'))
    run(folder, 2, 'train.py', '--resume')
    assert (work_dir / 'epoch_2.pth').is_file()
