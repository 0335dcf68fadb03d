_base_ = 'mmdet::deformable_detr/deformable-detr_r50_16xb2-50e_coco.py'

# MMDetection's recipe, to compare with its zoo. Each of the four levels is
# convolved by itself.
model = dict(
    type='mmpe.DeformableDETR',
    positional_encoding=[
        dict(
            type='mmpe.PEG',
            bias=False,
            norm_cfg=dict(type='BN'),
            act_cfg=dict(type='ReLU'))
    ])
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={'positional_encoding': dict(decay_mult=0.0)}))
