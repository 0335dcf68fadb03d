_base_ = './deit-tiny_4xb256_in1k.py'

# Swin Transformer's bias of offsets instead of the table; 72.82 top-1 in LaPE's
# paper.
model = dict(
    backbone=dict(
        positional_encoding=[dict(type='mmpe.RelativePositionBias')]))
