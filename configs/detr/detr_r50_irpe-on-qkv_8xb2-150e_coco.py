_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# On q, k and v.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.ImageRPE', target='qkv', init='xavier')
    ])
