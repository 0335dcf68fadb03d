"""What users see when their input is wrong: the tools' exit and last line,
and that what a work dir holds stays."""
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_launch import TINY, TOOLS, environment

SAMPLE = Path(__file__).parents[1] / 'data' / 'coco_sample'
CUT_OFF = b'PK\x03\x04 the rest is missing'


def fail(*command):
    """Run a tool that must fail; return its exit status, its last line and
    all about it."""
    done = subprocess.run([str(word) for word in command],
                          env=dict(environment(), OMP_NUM_THREADS='1'),
                          capture_output=True,
                          text=True,
                          timeout=200)
    assert done.returncode, done.stdout
    return done.returncode, done.stderr.strip().splitlines()[-1], done


@pytest.fixture
def data(tmp_path):
    """Three images of the sample, with their annotations."""
    content = json.loads((SAMPLE / 'annotations_train16.json').read_text())
    del content['images'][3:]
    ids = [image['id'] for image in content['images']]
    content['annotations'] = [
        one for one in content['annotations'] if one['image_id'] in ids
    ]
    folder = tmp_path / 'data'
    (folder / 'images').mkdir(parents=True)
    for image in content['images']:
        shutil.copy(SAMPLE / 'images' / image['file_name'],
                    folder / 'images')
    (folder / 'annotations.json').write_text(json.dumps(content))
    return folder


@pytest.fixture
def config(tmp_path, data):
    path = tmp_path / 'mine.py'
    path.write_text(f"""
_base_ = {str(TINY)!r}
train_dataloader = dict(num_workers=1, dataset=dict(
    data_root={str(data)!r}, ann_file='annotations.json', indices=None))
val_cfg = val_dataloader = val_evaluator = None
""")
    return path


@pytest.fixture
def work_dir(tmp_path):
    """Of an earlier run."""
    folder = tmp_path / 'work dir'
    folder.mkdir()
    (folder / 'epoch_1.pth').write_bytes(CUT_OFF)
    (folder / 'mine.py').write_text('# of the earlier run')
    return folder


def assert_kept(work_dir):
    assert (work_dir / 'epoch_1.pth').read_bytes() == CUT_OFF


def test_wrong_encoding(config, work_dir):
    config.write_text(config.read_text() + "model = dict("
                      "positional_encoding=[dict(type='mmpe.PEGG')])\n")
    status, line, done = fail(sys.executable, TOOLS / 'train.py', config,
                              '--work-dir', work_dir)
    assert status == 2
    assert line.startswith('train.py: error: config ')
    assert "'mmpe.PEGG'. Did you mean mmpe.PEG?" in line
    assert 'Traceback' not in done.stderr
    assert_kept(work_dir)
    assert (work_dir / 'mine.py').read_text() == '# of the earlier run'


def test_several_processes_end_in_the_same_line(config, work_dir, data):
    text = (data / 'annotations.json').read_text()
    (data / 'annotations.json').write_text(
        text.replace('"person"', '"preson"'))
    _, _, done = fail(TOOLS / 'dist_train.sh', config, 2, '--work-dir',
                      work_dir)
    end = '\n'.join(done.stderr.splitlines()[-5:])
    assert "has no category 'person'" in end
    assert 'Did you mean preson?' in end
    assert_kept(work_dir)


def test_image_that_is_cut_off(config, work_dir, data):
    image = sorted((data / 'images').iterdir())[1]
    image.write_bytes(image.read_bytes()[:3000])
    status, line, _ = fail(sys.executable, TOOLS / 'train.py', config,
                           '--work-dir', work_dir)
    assert status == 2
    assert line.startswith(f'train.py: error: cannot read image {image}: ')
    assert_kept(work_dir)


def test_checkpoint_that_is_cut_off(config, work_dir):
    status, line, done = fail(sys.executable, TOOLS / 'test.py', config,
                              work_dir / 'epoch_1.pth', '--work-dir', work_dir)
    assert status == 2
    assert line == (
        f'test.py: error: checkpoint {work_dir}/epoch_1.pth, {len(CUT_OFF)} '
        'bytes, is cut off, damaged or none at all')
    assert 'Traceback' not in done.stderr
    assert_kept(work_dir)
    assert not (work_dir / 'metrics.json').exists()
