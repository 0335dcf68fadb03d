_base_ = 'mmseg::sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512.py'

# An encoder layer on the coarsest map of the backbone, before the pyramid.
model = dict(
    data_preprocessor=dict(type='mmpe.SegDataPreProcessor'),
    neck=[
        dict(
            type='mmpe.TransformerNeck',
            in_channels=[256, 512, 1024, 2048],
            positional_encoding=[
                dict(type='mmpe.PEG')
            ]),
        dict(
            type='FPN',
            in_channels=[256, 256, 256, 256],
            out_channels=256,
            num_outs=4)
    ])
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(positional_encoding=dict(decay_mult=0.0))))
