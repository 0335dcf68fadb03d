"""A DETR that trains in seconds, on a few images of the sample."""
_base_ = 'mmdet::_base_/default_runtime.py'
data_root = '{{ fileDirname }}/../data/coco_sample/'
width = 32

attention = dict(embed_dims=width, num_heads=4, dropout=0.0, batch_first=True)
ffn = dict(embed_dims=width, feedforward_channels=64, ffn_drop=0.0)
model = dict(
    type='mmpe.DETR',
    num_queries=20,
    data_preprocessor=dict(
        type='DetDataPreprocessor',
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True),
    backbone=dict(
        type='ResNet',
        depth=18,
        base_channels=8,
        num_stages=3,
        strides=(1, 2, 2),
        dilations=(1, 1, 1),
        out_indices=(2, ),
        norm_cfg=dict(type='BN')),
    neck=dict(
        type='ChannelMapper',
        in_channels=[32],
        kernel_size=1,
        out_channels=width,
        act_cfg=None,
        num_outs=1),
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.PEG'),
    ],
    encoder=dict(
        num_layers=1, layer_cfg=dict(self_attn_cfg=attention, ffn_cfg=ffn)),
    decoder=dict(
        num_layers=1,
        layer_cfg=dict(
            self_attn_cfg=attention, cross_attn_cfg=attention, ffn_cfg=ffn),
        return_intermediate=True),
    bbox_head=dict(
        type='DETRHead',
        num_classes=80,
        embed_dims=width,
        loss_cls=dict(
            type='CrossEntropyLoss', bg_cls_weight=0.1, class_weight=1.0),
        loss_bbox=dict(type='L1Loss', loss_weight=5.0),
        loss_iou=dict(type='GIoULoss', loss_weight=2.0)),
    train_cfg=dict(
        assigner=dict(
            type='HungarianAssigner',
            match_costs=[
                dict(type='ClassificationCost', weight=1.),
                dict(type='BBoxL1Cost', weight=5.0),
                dict(type='IoUCost', iou_mode='giou', weight=2.0),
            ])),
    test_cfg=dict(max_per_img=20))

pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='Resize', scale=(128, 96), keep_ratio=True),
    dict(
        type='PackDetInputs',
        meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape',
                   'scale_factor')),
]
dataset = dict(
    type='CocoDataset',
    data_root=data_root,
    ann_file='annotations_train16.json',
    data_prefix=dict(img='images/'),
    indices=7,  # an odd number, so the processes don't share it evenly
    test_mode=True,
    pipeline=pipeline)
train_dataloader = dict(
    batch_size=2,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(dataset, test_mode=False))
test_dataloader = dict(
    batch_size=1,
    num_workers=0,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dataset)
val_dataloader = test_dataloader
val_evaluator = test_evaluator = dict(
    type='CocoMetric', ann_file=data_root + 'annotations_train16.json')

train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=1, val_interval=10)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')
optim_wrapper = dict(
    type='OptimWrapper', optimizer=dict(type='AdamW', lr=1e-3))
auto_scale_lr = dict(base_batch_size=2)
default_hooks = dict(logger=dict(interval=1))
