_base_ = './deit-small_4xb256_in1k.py'

# 9x9 buckets.
model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.PositionEmbedding'),
        dict(type='mmpe.ImageRPE', ratio=2.0)
    ]))
