"""mmpe as a wheel installs it, in a folder with no checkout in sight."""
import json
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.machinery import PathFinder
from pathlib import Path

import mmcv
import mmdet
import pytest

ROOT = Path(__file__).parents[1]
DATA = ROOT / 'tests/data/coco_sample'
TINY = ROOT / 'tests/tools/tiny_detr.py'
HAS_OPS = PathFinder.find_spec('mmcv._ext', mmcv.__path__) is not None
# These need the checkout, or are studies of ours; users have all other tools.
NOT_PACKED = {
    'check_intervals.py', 'generate_coco.py', 'miniature.py', 'quickstart.py',
    'quickstart.sh', 'quickstart_pictures.py', 'run_tests.sh',
    'segmentation_sample.py', 'setup_env.sh'
}
TOOLS = {p.name for p in (ROOT / 'tools').glob('*.*')} - NOT_PACKED
NAME = 'detr_r50_peg_8xb4-50e_coco'

CONFIG = f"""
_base_ = 'mmpe::detr/{NAME}.py'
pipeline = _base_.test_pipeline
pipeline[1].scale = (128, 96)
data = dict(
    data_root='{DATA}/',
    ann_file='annotations_train16.json',
    data_prefix=dict(img='images/'),
    indices=4,
    pipeline=pipeline)
model = dict(
    backbone=dict(depth=18, base_channels=8, init_cfg=None),
    neck=dict(in_channels=[64]),
    num_queries=10,
    test_cfg=dict(max_per_img=10),
    encoder=dict(num_layers=1),
    decoder=dict(num_layers=1))
loading = dict(num_workers=0, persistent_workers=False, dataset=data)
train_dataloader = dict(batch_size=2, **loading)
val_dataloader = loading
test_dataloader = loading
val_evaluator = dict(ann_file='{DATA}/annotations_train16.json')
test_evaluator = val_evaluator
train_cfg = dict(max_epochs=1)
default_hooks = dict(logger=dict(interval=1))
"""

# What README tells users of MMDetection's Python interface to write.
INFERENCE = """
import json
import sys
import torch
import mmpe
from mmdet.apis import DetInferencer, inference_detector, init_detector
from mmengine.hub import get_model

config, checkpoint, name, image = sys.argv[1:]


def predict(*args, **kwargs):
    inferencer = DetInferencer(*args, device='cpu', **kwargs)
    out = inferencer(image, no_save_vis=True, no_save_pred=True)
    return inferencer.model, out['predictions'][0]


detector = init_detector(config, checkpoint, device='cpu')
found = inference_detector(detector, image).pred_instances
_, by_path = predict(config, checkpoint)
model = get_model(f'mmpe::detr/{name}.py')
torch.save(dict(state_dict=model.state_dict()), 'zoo.pth')
named, by_name = predict(name, 'zoo.pth', scope='mmpe')
print(json.dumps(dict(
    file=mmpe.__file__,
    detector=dict(bboxes=found.bboxes.tolist(), scores=found.scores.tolist()),
    by_path=by_path,
    by_name=by_name,
    weights_of_name_are_equal=all(
        torch.equal(x, y)
        for x, y in zip(model.state_dict().values(),
                        named.state_dict().values(), strict=True)),
    listed=DetInferencer.list_models('mmpe', name))))
"""

STARTS_ALL = """
import runpy
import sys
for tool in sys.argv[1:]:
    sys.argv = [tool, '--help']
    try:
        runpy.run_path(tool, run_name='__main__')
    except SystemExit as end:
        assert not end.code, tool
"""


def run(*command, cwd, path):
    env = dict(
        os.environ,
        PYTHONPATH=str(path),
        PYTHON=sys.executable,
        OMP_NUM_THREADS='1',
        CUDA_VISIBLE_DEVICES='')
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300)


def succeed(*command, **kwargs):
    done = run(*command, **kwargs)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope='module')
def wheel(tmp_path_factory):
    """Built from a copy: pip leaves what it built beside the sources."""
    folder = tmp_path_factory.mktemp('wheel')
    source = folder / 'source'
    source.mkdir()
    for name in ('mmpe', 'configs', 'tools'):
        shutil.copytree(
            ROOT / name,
            source / name,
            symlinks=True,
            ignore=shutil.ignore_patterns('__pycache__'))
    for name in ('setup.py', 'model-index.yml', 'README.md', 'LICENSE'):
        shutil.copy(ROOT / name, source)
    succeed(
        sys.executable, '-m', 'pip', 'wheel', '--no-deps',
        '--no-build-isolation', '--wheel-dir', folder, source,
        cwd=folder, path='')  # yapf: disable
    built, = folder.glob('*.whl')
    return built


@pytest.fixture(scope='module')
def site(wheel, tmp_path_factory):
    """The folder with mmpe in it, and nothing else."""
    folder = tmp_path_factory.mktemp('site')
    succeed(
        sys.executable, '-m', 'pip', 'install', '--no-deps', '--no-index',
        '--target', folder, wheel, cwd=folder, path='')  # yapf: disable
    assert {p.name.partition('-')[0] for p in folder.iterdir()} == {'mmpe'}
    return folder


@pytest.fixture(scope='module')
def trained(site, tmp_path_factory):
    """A config on a base of the wheel, and what the wheel's tool made of it
    in a folder that was empty."""
    cwd = tmp_path_factory.mktemp('work')
    (cwd / 'config.py').write_text(CONFIG)
    log = succeed(
        site / 'mmpe/.mim/tools/dist_train.sh', 'config.py', 1,
        cwd=cwd, path=site)  # yapf: disable
    return cwd / 'config.py', cwd / 'work_dirs/config/epoch_1.pth', log


def files_below(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in Path(folder).rglob('*')
        if p.is_file() and '__pycache__' not in p.parts
    }


def test_wheel_has_all_files_configs_and_tools_and_no_more(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {
            name: archive.read(name)
            for name in archive.namelist() if '.dist-info/' not in name
        }
    expected = {
        f'mmpe/{k}': v
        for k, v in files_below(ROOT / 'mmpe').items()
        if not k.startswith('.mim/')
    }
    expected.update({
        f'mmpe/.mim/configs/{k}': v
        for k, v in files_below(ROOT / 'configs').items()
        if not k.startswith('quickstart/')
    })
    for name in [f'tools/{tool}' for tool in TOOLS] + ['model-index.yml']:
        expected[f'mmpe/.mim/{name}'] = (ROOT / name).read_bytes()
    assert sorted(packed) == sorted(expected)
    assert packed == expected


def test_a_source_distribution_builds_the_same_wheel(wheel):
    source = wheel.parent / 'source'
    succeed(
        sys.executable, 'setup.py', '-q', 'sdist', '--dist-dir', '..',
        cwd=source, path='')  # yapf: disable
    archive, = wheel.parent.glob('*.tar.gz')
    shutil.unpack_archive(archive, wheel.parent / 'unpacked')
    unpacked, = (wheel.parent / 'unpacked').iterdir()
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            if '.dist-info/' not in name:
                assert packed.read(name) == (unpacked / name).read_bytes()


def test_its_tool_trains_a_config_on_a_base_of_the_wheel(site, trained):
    config, checkpoint, log = trained
    assert checkpoint.is_file()
    assert 'Epoch(train) [1][2/2]' in log
    assert 'coco/bbox_mAP' in log
    # The checkout is nowhere on its path.
    traced = succeed(
        sys.executable, '-c', 'import mmpe; print(mmpe.__file__)',
        cwd=config.parent, path=site)  # yapf: disable
    assert Path(traced.strip()).is_relative_to(site)


def test_every_tool_starts(site, tmp_path):
    tools = site / 'mmpe/.mim/tools'
    scripts = [
        t for t in sorted(tools.glob('*.py')) if '__main__' in t.read_text()
    ]
    (tmp_path / 'start.py').write_text(STARTS_ALL)
    out = succeed(
        sys.executable, 'start.py', *scripts,
        cwd=tmp_path, path=f'{site}:{tools}')  # yapf: disable
    assert out.count('usage: ') == len(scripts) > 5


def test_mmdetections_python_interface_takes_its_models(site, trained):
    config, checkpoint, _ = trained
    cwd = config.parent
    (cwd / 'inference.py').write_text(INFERENCE)
    image = min((DATA / 'images').iterdir())
    out = succeed(
        sys.executable, 'inference.py', config, checkpoint, NAME, image,
        cwd=cwd, path=site)  # yapf: disable
    found = json.loads(out.splitlines()[-1])
    assert Path(found['file']).is_relative_to(site)
    detector, by_path = found['detector'], found['by_path']
    assert len(detector['scores']) == 10
    assert all(0 < score < 1 for score in detector['scores'])
    assert by_path['bboxes'] == detector['bboxes']
    assert by_path['scores'] == detector['scores']
    # By name it is the whole model, with the weights that were given.
    assert found['weights_of_name_are_equal']
    assert len(found['by_name']['scores']) == 100
    assert found['listed'] == [NAME]


@pytest.mark.parametrize('imports', [False, True])
def test_mmdetections_own_tool_trains_its_models(site, tmp_path, imports):
    """Without MMCV's ops MMDetection itself can't be imported before mmpe,
    which the config can ask for."""
    (tmp_path / 'config.py').write_text(
        f"_base_ = '{TINY}'\n" +
        ("custom_imports = dict(imports=['mmpe'])" if imports else ''))
    tool = Path(mmdet.__file__).parent / '.mim/tools/train.py'
    done = run(
        sys.executable, tool, 'config.py', '--cfg-options',
        'train_dataloader.dataset.indices=4',
        cwd=tmp_path, path=site)  # yapf: disable
    if imports or HAS_OPS:
        assert done.returncode == 0, done.stdout
        assert 'Epoch(train) [1][2/2]' in done.stdout
    else:
        assert "No module named 'mmcv._ext'" in done.stdout
