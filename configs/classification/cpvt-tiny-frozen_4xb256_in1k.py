_base_ = './deit-tiny_4xb256_in1k.py'

# A random PEG that stays as it is; 71.3 top-1 in the paper.
# For a trained one add init_cfg=dict(type='Pretrained', checkpoint=...,
# prefix='backbone.positional_encoding.peg.').
model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.PEG', bias=False, trainable=False)
    ]))
