_base_ = 'mmdet::deformable_detr/deformable-detr_r50_16xb2-50e_coco.py'

# As its authors' code, whose checkpoints this takes as they are: the neck's
# convolutions have biases, which MMDetection leaves out before a norm.
model = dict(
    type='mmpe.DeformableDETR',
    neck=dict(bias=True),
    positional_encoding=[
        dict(
            type='mmpe.SinePositionalEncoding', normalize=True, offset=-0.5)
    ])
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={'positional_encoding': dict(decay_mult=0.0)}))
