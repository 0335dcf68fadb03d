"""``mmpe::...`` where MMEngine takes the name of a config."""
import subprocess
import sys
from pathlib import Path

from models import build  # noqa: F401  first, for MMCV without its ops

import pytest
import torch
from mmengine.config import Config
from mmengine.hub import get_config, get_model
from mmengine.optim import MultiStepLR
from mmengine.registry import (DATASETS, PARAM_SCHEDULERS, DefaultScope,
                               init_default_scope)

import mmpe
from mmpe.utils import register_all_modules

ROOT = Path(__file__).parents[1]
PEG = 'detr/detr_r50_peg_8xb4-50e_coco.py'


def test_get_config_reads_the_file():
    expected = Config.fromfile(ROOT / 'configs' / PEG).to_dict()
    assert get_config(f'mmpe::{PEG}').to_dict() == expected
    # As MMDetection's, whose names need the suffix too.
    for name in f'mmpe::{PEG}', 'mmdet::detr/detr_r50_8xb2-150e_coco.py':
        with pytest.raises(FileNotFoundError):
            get_config(name.removesuffix('.py'))


def test_a_name_with_a_dot_is_found():
    name = 'mmpe::detr/detr_r50_irpe-ratio1.9_8xb2-150e_coco.py'
    assert get_config(name).model.positional_encoding[1].ratio == 1.9


@pytest.mark.parametrize('name, module, backbone', [
    (PEG, 'mmpe.detectors.detr', 'mmdet'),
    ('deformable_detr/deformable-detr_r50_irpe_16xb2-50e_coco.py',
     'mmpe.detectors.deformable_detr', 'mmdet'),
    ('transformer_neck/fcos_r50_neck-peg_fpn_36e_coco.py',
     'mmdet.models.detectors.fcos', 'mmdet'),
    ('vit/mask-rcnn_cpvt-small_1x_coco.py',
     'mmdet.models.detectors.mask_rcnn', 'mmpe'),
    ('vit/retinanet_twins-pcpvt-small_1x_coco.py',
     'mmdet.models.detectors.retinanet', 'mmseg'),
    ('segmentation/upernet_cpvt-small_8xb2-160k_ade20k-512x512.py',
     'mmseg.models.segmentors.encoder_decoder', 'mmpe'),
    ('segmentation/fpn_r50_neck-peg_4xb4-160k_ade20k-512x512.py',
     'mmseg.models.segmentors.encoder_decoder', 'mmseg'),
])  # yapf: disable
def test_get_model_builds_all_kinds(name, module, backbone):
    """ResNet is in MMDetection and in MMSegmentation."""
    model = get_model(f'mmpe::{name}')
    assert type(model).__module__ == module
    assert type(model.backbone).__module__.startswith(f'{backbone}.')


def test_base_is_merged_and_its_types_are_found(tmp_path):
    config = tmp_path / 'config.py'
    config.write_text(f"""
_base_ = 'mmpe::{PEG}'
model = dict(backbone=dict(init_cfg=None), num_queries=7)
pipeline = _base_.test_pipeline
pipeline[1].scale = (96, 64)
dataset = dict(
    type='CocoDataset',
    data_root='{ROOT}/tests/data/coco_sample',
    ann_file='annotations.json',
    data_prefix=dict(img='images/'),
    pipeline=pipeline)
""")
    cfg = Config.fromfile(config)
    assert cfg.model.num_queries == 7
    assert cfg.model.positional_encoding[0].type == 'mmpe.PEG'
    with DefaultScope.overwrite_default_scope('mmdet'):
        item = DATASETS.build(cfg.dataset)[0]
    assert min(item['inputs'].shape[1:]) == 64
    assert len(item['data_samples'].gt_instances) > 0


def test_what_a_base_adds_to_its_own_base_is_found(tmp_path):
    """MMEngine takes it for types of scope mmpe."""
    config = tmp_path / 'config.py'
    config.write_text(f"_base_ = 'mmpe::{PEG}'")
    scheduler = Config.fromfile(config).param_scheduler[0]
    assert scheduler._scope_ == 'mmpe'
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    with DefaultScope.overwrite_default_scope('mmdet'):
        built = PARAM_SCHEDULERS.build(
            scheduler, default_args=dict(optimizer=optimizer))
    assert isinstance(built, MultiStepLR)


@pytest.mark.parametrize('editable', [False, True])
def test_a_checkout_is_found(tmp_path, editable):
    """An editable install has its metadata elsewhere than its modules."""
    if editable:
        info = tmp_path / f'mmpe-{mmpe.__version__}.dist-info'
        info.mkdir()
        (info / 'METADATA').write_text(
            'Metadata-Version: 2.1\nName: mmpe\n'
            f'Version: {mmpe.__version__}\n')
        (info / 'top_level.txt').write_text('mmpe\n')
    code = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]
import mmpe
from mmengine.hub import get_config
print(get_config('mmpe::{PEG}').filename)
"""
    done = subprocess.run(
        [sys.executable, '-c', code],
        cwd=tmp_path,
        capture_output=True,
        text=True)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).samefile(ROOT / 'configs' / PEG)


def test_registering_everything_sets_the_scope():
    with DefaultScope.overwrite_default_scope('mmdet'):
        register_all_modules(init_default_scope=False)
        assert DefaultScope.get_current_instance().scope_name == 'mmdet'
        register_all_modules()
        assert DefaultScope.get_current_instance().scope_name == 'mmpe'
        init_default_scope('mmdet')
