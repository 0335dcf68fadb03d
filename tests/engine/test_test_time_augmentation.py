"""--tta for configs with and without a description of it."""
from mmengine.config import Config

from mmpe.engine.test_time_augmentation import enable_tta


def make_cfg(**kwargs):
    pipeline = [
        dict(type='LoadImageFromFile'),
        dict(type='PackDetInputs', meta_keys=('img_id', 'ori_shape')),
    ]
    dataset = dict(type='CocoDataset', pipeline=pipeline)
    return Config(
        dict(
            model=dict(type='mmpe.DETR'),
            test_dataloader=dict(
                dataset=dict(type='RepeatDataset', dataset=dataset)),
            **kwargs))


def test_each_image_is_also_flipped():
    cfg = make_cfg()
    enable_tta(cfg)
    assert cfg.model.type == 'DetTTAModel'
    assert cfg.model.module == dict(type='mmpe.DETR')
    load, augment = cfg.test_dataloader.dataset.dataset.pipeline
    assert load.type == 'LoadImageFromFile'
    flips, (pack, ) = augment.transforms
    assert sorted(flip.prob for flip in flips) == [0, 1]
    assert tuple(pack.meta_keys) == ('img_id', 'ori_shape', 'flip',
                                     'flip_direction')


def test_what_the_config_says_counts():
    cfg = make_cfg(
        tta_model=dict(type='DetTTAModel', tta_cfg=dict(max_per_img=7)),
        tta_pipeline=[dict(type='TestTimeAug', transforms=[])])
    enable_tta(cfg)
    assert cfg.model.tta_cfg.max_per_img == 7
    assert cfg.test_dataloader.dataset.dataset.pipeline == cfg.tta_pipeline
