_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# The recipe of iRPE's DETR with the bias of Swin Transformer; no paper has
# these numbers. The grid is that of an image of 800x1333.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.RelativePositionBias', grid=(25, 42))
    ])
