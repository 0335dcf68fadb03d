_base_ = 'mmdet::deformable_detr/deformable-detr_r50_16xb2-50e_coco.py'

# LaPE in Deformable DETR is ours: no paper has it. Each encoder layer normalises
# the sum of position and level embedding.
model = dict(
    type='mmpe.DeformableDETR',
    positional_encoding=[
        dict(
            type='mmpe.SinePositionalEncoding', normalize=True, offset=-0.5),
        dict(type='mmpe.LaPE')
    ])
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={'positional_encoding': dict(decay_mult=0.0)}))
