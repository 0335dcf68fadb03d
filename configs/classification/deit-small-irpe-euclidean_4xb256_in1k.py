_base_ = './deit-small_4xb256_in1k.py'

# The ratio of the published model.
model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.PositionEmbedding'),
        dict(type='mmpe.ImageRPE', ratio=20.0, method='euclidean')
    ]))
