_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# 15x15 buckets.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.ImageRPE', ratio=3.5, init='xavier')
    ])
