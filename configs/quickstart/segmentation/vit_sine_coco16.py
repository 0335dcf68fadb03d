# A vision transformer small enough to overfit 16 images on two CPU cores in about
# a minute. It shows that a position encoding trains, not how good it is. The
# images are made by tools/quickstart.sh --segmentation.
_base_ = 'mmseg::_base_/default_runtime.py'

classes = ('background', 'person', 'bird', 'cat', 'bowl', 'banana', 'umbrella',
           'laptop', 'dining table')
size = (128, 128)  # a canvas for upright and for wide images
model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='mmpe.SegDataPreProcessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        size=size,
        test_cfg=dict(size_divisor=8)),
    backbone=dict(
        type='mmpe.VisionTransformer',
        arch=dict(
            embed_dims=96, num_layers=4, num_heads=3, feedforward_channels=192),
        img_size=size,
        patch_size=8,
        positional_encoding=[dict(type='mmpe.SinePositionalEncoding')],
        with_cls_token=False),
    decode_head=dict(
        type='FCNHead',
        in_channels=96,
        in_index=0,
        channels=96,
        num_convs=1,
        concat_input=False,
        dropout_ratio=0.,
        num_classes=len(classes),
        norm_cfg=dict(type='BN')),
    test_cfg=dict(mode='whole'))

pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', reduce_zero_label=True),
    dict(type='Resize', scale=(128, 96), keep_ratio=True),
    dict(type='PackSegInputs')
]
images = dict(
    type='BaseSegDataset',
    data_root='work_dirs/quickstart/images16',
    data_prefix=dict(
        img_path='images/training', seg_map_path='annotations/training'),
    img_suffix='.jpg',
    seg_map_suffix='.png',
    metainfo=dict(classes=classes),
    reduce_zero_label=True,
    pipeline=pipeline)
train_dataloader = dict(
    batch_size=4,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(type='RepeatDataset', times=16, dataset=images))
test_pipeline = [  # the ground truth stays as large as the image was
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(128, 96), keep_ratio=True),
    dict(type='LoadAnnotations', reduce_zero_label=True),
    dict(type='PackSegInputs')
]
test_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(images, pipeline=test_pipeline))
test_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=2e-3, weight_decay=1e-4),
    clip_grad=dict(max_norm=1.0),
    paramwise_cfg=dict(
        custom_keys=dict(positional_encoding=dict(decay_mult=0.0))))
max_epochs = 18
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=max_epochs)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=20),
    dict(type='MultiStepLR', begin=0, end=max_epochs, milestones=[14])
]
test_cfg = dict(type='TestLoop')
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    param_scheduler=dict(type='ParamSchedulerHook'),
    checkpoint=dict(type='CheckpointHook', interval=max_epochs),
    logger=dict(type='LoggerHook', interval=24))
randomness = dict(seed=0)
