"""A segmentor that trains in seconds, on a sample in ADE20K's format whose
folder is given for each data set."""
_base_ = 'mmseg::_base_/default_runtime.py'
metainfo = dict(
    classes=('background', 'person', 'bird', 'cat', 'bowl', 'banana',
             'umbrella', 'laptop', 'dining table'))
crop = (64, 64)

model = dict(
    type='EncoderDecoder',
    data_preprocessor=dict(
        type='mmpe.SegDataPreProcessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        size=crop),
    backbone=dict(
        type='mmpe.VisionTransformer',
        arch=dict(
            embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64),
        img_size=64,
        patch_size=8,
        positional_encoding=[
            dict(type='mmpe.PositionEmbedding'),
            dict(type='mmpe.PEG')
        ]),
    decode_head=dict(
        type='FCNHead',
        in_channels=32,
        in_index=0,
        channels=32,
        num_convs=1,
        num_classes=9,
        norm_cfg=dict(type='BN')),
    test_cfg=dict(mode='whole'))

load = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(96, 64), keep_ratio=True),
    dict(type='LoadAnnotations', reduce_zero_label=True)
]
train_dataloader = dict(
    batch_size=2,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        type='BaseSegDataset',
        metainfo=metainfo,
        reduce_zero_label=True,
        data_prefix=dict(
            img_path='images/training', seg_map_path='annotations/training'),
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations', reduce_zero_label=True),
            dict(type='Resize', scale=(96, 64), keep_ratio=True),
            dict(type='RandomCrop', crop_size=crop),
            dict(type='PackSegInputs')
        ]))
val_dataloader = test_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='BaseSegDataset',
        metainfo=metainfo,
        reduce_zero_label=True,
        data_prefix=dict(
            img_path='images/training',
            seg_map_path='annotations/training'),
        pipeline=[*load, dict(type='PackSegInputs')]))
val_evaluator = test_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])

optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='AdamW', lr=1e-3))
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=2, val_interval=1)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=1),
    checkpoint=dict(type='CheckpointHook', interval=1))
