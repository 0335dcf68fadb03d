_base_ = 'mmdet::deformable_detr/deformable-detr_r50_16xb2-50e_coco.py'

# A plain backbone has one stride, so the levels are those of the pyramid; the
# sine stays in the encoder.
model = dict(
    type='mmpe.DeformableDETR',
    data_preprocessor=dict(type='mmpe.DetDataPreprocessor'),
    backbone=dict(
        _delete_=True,
        type='mmpe.VisionTransformer',
        arch='deit-small',
        positional_encoding=[dict(type='mmpe.PEG', bias=False)],
        with_cls_token=False,
        window_size=14,
        global_layers=(2, 5, 8, 11),
        drop_path_rate=0.1),
    neck=dict(
        _delete_=True,
        type='mmpe.SimpleFeaturePyramid',
        in_channels=384,
        scales=(2, 1, 0.5),
        num_outs=4),
    positional_encoding=[
        dict(
            type='mmpe.SinePositionalEncoding', normalize=True, offset=-0.5)
    ])
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={'positional_encoding': dict(decay_mult=0.0)}))
