_base_ = './deit-tiny_4xb256_in1k.py'

# PEG and the learned table; 72.9 top-1 in the paper.
model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.PositionEmbedding'),
        dict(type='mmpe.PEG', bias=False)
    ]))
