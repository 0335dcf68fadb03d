_base_ = './deit-tiny_4xb256_in1k.py'

# The control of twelve 1x1 layers; 68.6 top-1 and 6.13M parameters in the paper,
# which a norm in each gives.
model = dict(
    backbone=dict(positional_encoding=[
        dict(
            type='mmpe.PEG',
            kind='dense',
            kernel_size=1,
            num_convs=12,
            norm_cfg=dict(type='BN'))
    ]))
