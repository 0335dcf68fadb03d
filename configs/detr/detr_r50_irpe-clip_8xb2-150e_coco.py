_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# Offsets beyond 4 cells share a bucket.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.ImageRPE', index='clip', init='xavier')
    ])
