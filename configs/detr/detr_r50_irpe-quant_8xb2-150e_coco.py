_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# The quant map.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.ImageRPE', method='quant', init='xavier')
    ])
