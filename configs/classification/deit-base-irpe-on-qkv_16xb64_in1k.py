_base_ = './deit-base_16xb64_in1k.py'

model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.PositionEmbedding'),
        dict(type='mmpe.ImageRPE', ratio=1.9, target='qkv')
    ]))
