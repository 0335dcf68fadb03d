_base_ = './deit-tiny_4xb256_in1k.py'

# Relative only, K=8; 70.5 top-1 in the paper of CPVT.
model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.ShawRPE', max_distance=8)
    ]))
