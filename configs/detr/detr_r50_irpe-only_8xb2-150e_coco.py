_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# No absolute encoding in the encoder; the decoder keeps its sine.
model = dict(
    positional_encoding=[
        dict(type='mmpe.ImageRPE', ratio=2.0, init='xavier')
    ])
