_base_ = './deformable-detr-1scale_r50-dc5_sine_8xb4-50e_coco.py'

# The PEG of CPVT's appendix on detection, after the first encoder layer.
model = dict(
    positional_encoding=[
        dict(
            type='mmpe.PEG',
            bias=False,
            norm_cfg=dict(type='BN'),
            act_cfg=dict(type='ReLU'))
    ])
