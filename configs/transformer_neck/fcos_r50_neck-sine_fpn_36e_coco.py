_base_ = './fcos_r50_fpn_36e_coco.py'

model = dict(
    data_preprocessor=dict(type='mmpe.DetDataPreprocessor'),
    backbone=dict(out_indices=(1, 2, 3)),
    neck=[
        dict(
            type='mmpe.TransformerNeck',
            in_channels=[512, 1024, 2048],
            positional_encoding=[
                dict(type='mmpe.SinePositionalEncoding', normalize=True)
            ]),
        dict(
            type='FPN',
            in_channels=[256, 256, 256],
            out_channels=256,
            add_extra_convs='on_output',
            num_outs=5,
            relu_before_extra_convs=True)
    ])
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(positional_encoding=dict(decay_mult=0.0))))
