# A Deformable DETR small enough to overfit 16 COCO images on two CPU cores in
# about a minute. It shows that a position encoding trains, not how good it is.
_base_ = 'mmdet::deformable_detr/deformable-detr-refine-twostage_r50_16xb2-50e_coco.py'  # noqa: E501

model = dict(
    type='mmpe.DeformableDETR',
    num_queries=50,
    num_feature_levels=3,
    backbone=dict(  # half as wide as ResNet-18, trained from scratch
        depth=18,
        base_channels=32,
        out_indices=(2, 3),
        frozen_stages=-1,
        norm_cfg=dict(requires_grad=True),
        norm_eval=False,
        init_cfg=None),
    neck=dict(in_channels=[128, 256], num_outs=3),
    encoder=dict(
        num_layers=2,
        layer_cfg=dict(
            self_attn_cfg=dict(num_levels=3, dropout=0.0),
            ffn_cfg=dict(feedforward_channels=512, ffn_drop=0.0))),
    decoder=dict(
        num_layers=2,
        layer_cfg=dict(
            self_attn_cfg=dict(dropout=0.0),
            cross_attn_cfg=dict(num_levels=3, dropout=0.0),
            ffn_cfg=dict(feedforward_channels=512, ffn_drop=0.0))),
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True, offset=-0.5)
    ])

# The images keep their aspect ratio, so most batches have padding.
train_pipeline = test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='Resize', scale=(224, 168), keep_ratio=True),
    dict(type='PackDetInputs')
]
images = dict(
    data_root='tests/data/coco_sample/',
    ann_file='annotations_train16.json',
    data_prefix=dict(img='images/'),
    pipeline=train_pipeline)
train_dataloader = dict(
    batch_size=2,
    num_workers=0,
    persistent_workers=False,
    dataset=dict(
        _delete_=True,
        type='RepeatDataset',  # an epoch of 16 images would be over at once
        times=9,
        dataset=dict(type='CocoDataset', **images)))
test_dataloader = dict(num_workers=0, persistent_workers=False, dataset=images)
test_evaluator = dict(ann_file=images['data_root'] + images['ann_file'])
val_dataloader = val_evaluator = val_cfg = None

optim_wrapper = dict(
    optimizer=dict(lr=5e-4),
    clip_grad=dict(max_norm=1.0),
    paramwise_cfg=dict(
        custom_keys={
            'backbone': dict(lr_mult=1.0),  # nothing there to preserve
            'positional_encoding': dict(decay_mult=0.0)
        }))
max_epochs = 5
train_cfg = dict(max_epochs=max_epochs)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=20),
    dict(type='MultiStepLR', begin=0, end=max_epochs, milestones=[4])
]
default_hooks = dict(
    checkpoint=dict(interval=max_epochs), logger=dict(interval=18))
randomness = dict(seed=0)
