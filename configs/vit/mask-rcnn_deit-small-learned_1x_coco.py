_base_ = 'mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py'

# Windows and pyramid as ViTDet, AdamW as there, MMDetection's schedule. Start from
# an image classifier: --cfg-options model.backbone.init_cfg.checkpoint=...
# model.backbone.init_cfg.type=Pretrained model.backbone.init_cfg.prefix=backbone.
model = dict(
    data_preprocessor=dict(type='mmpe.DetDataPreprocessor'),
    backbone=dict(
        _delete_=True,
        type='mmpe.VisionTransformer',
        arch='deit-small',
        positional_encoding=[dict(type='mmpe.PositionEmbedding')],
        with_cls_token=False,
        window_size=14,
        global_layers=(2, 5, 8, 11),
        drop_path_rate=0.1),
    neck=dict(
        _delete_=True,
        type='mmpe.SimpleFeaturePyramid',
        in_channels=384,
        num_outs=5))
optim_wrapper = dict(
    _delete_=True,
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=0.1),
    paramwise_cfg=dict(
        norm_decay_mult=0.0,
        custom_keys=dict(positional_encoding=dict(decay_mult=0.0))))
