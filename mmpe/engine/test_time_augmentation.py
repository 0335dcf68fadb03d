"""``tools/test.py --tta`` for configs that don't describe it."""
from copy import deepcopy

from mmengine.config import Config, ConfigDict

_FLIP_KEYS = ('flip', 'flip_direction')
_MODEL = dict(
    type='DetTTAModel',
    tta_cfg=dict(nms=dict(type='nms', iou_threshold=0.5), max_per_img=100))


def enable_tta(cfg: Config) -> None:
    """Test with augmentation: by the config's ``tta_model`` and
    ``tta_pipeline`` or, where it lacks them, with each image also flipped and
    the boxes of both merged by non-maximum suppression."""
    dataset = cfg.test_dataloader.dataset
    while 'dataset' in dataset:
        dataset = dataset.dataset
    dataset.pipeline = cfg.get('tta_pipeline') or _flipping(dataset.pipeline)
    model = deepcopy(cfg.get('tta_model') or _MODEL)
    cfg.model = ConfigDict(**model, module=cfg.model)


def _flipping(pipeline: list) -> list:
    """``pipeline`` with its last step, the packing, done for both flips."""
    *steps, pack = deepcopy(list(pipeline))
    keys = pack.get('meta_keys', ('img_id', 'img_path', 'ori_shape',
                                  'img_shape', 'scale_factor'))
    pack['meta_keys'] = tuple(keys) + _FLIP_KEYS
    flips = [dict(type='RandomFlip', prob=prob) for prob in (0., 1.)]
    return [*steps, dict(type='TestTimeAug', transforms=[flips, [pack]])]
