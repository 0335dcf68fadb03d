_base_ = './deit-tiny_4xb256_in1k.py'

model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.PositionEmbedding'),
        dict(type='mmpe.ImageRPE', ratio=1.9)
    ]))
