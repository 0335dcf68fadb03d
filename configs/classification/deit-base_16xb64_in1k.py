_base_ = 'mmpretrain::deit/deit-base_16xb64_in1k.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='mmpe.VisionTransformer',
        arch='deit-base',
        positional_encoding=[dict(type='mmpe.PositionEmbedding')],
        out_type='cls_token',
        drop_path_rate=0.1))
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(
            positional_encoding=dict(decay_mult=0.0),
            cls_token=dict(decay_mult=0.0),
            dist_token=dict(decay_mult=0.0))))
