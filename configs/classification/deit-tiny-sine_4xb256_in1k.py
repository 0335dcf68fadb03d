_base_ = './deit-tiny_4xb256_in1k.py'

# 72.3 top-1 in the paper of CPVT.
model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding')
    ]))
