_base_ = './upernet_deit-small-learned_8xb2-160k_ade20k-512x512.py'

model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding')
    ]))
