_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# 7x7 buckets: 40.9 AP as published.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.ImageRPE', ratio=1.9, init='xavier')
    ])
