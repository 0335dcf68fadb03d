_base_ = './deit-tiny_4xb256_in1k.py'

# The independent form; form='progressive' is that of the ICCV version.
model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.PositionEmbedding'),
        dict(type='mmpe.LaPE')
    ]))
