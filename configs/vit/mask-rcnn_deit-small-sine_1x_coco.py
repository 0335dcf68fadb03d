_base_ = './mask-rcnn_deit-small-learned_1x_coco.py'

model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding')
    ]))
