_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# A number per bucket instead of a vector.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.ImageRPE', mode='bias', init='xavier')
    ])
