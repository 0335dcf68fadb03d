_base_ = './fcos_deit-small-learned_1x_coco.py'

# One PEG after the first block and no table, so any size of image is alike.
model = dict(
    backbone=dict(positional_encoding=[dict(type='mmpe.PEG', bias=False)]))
