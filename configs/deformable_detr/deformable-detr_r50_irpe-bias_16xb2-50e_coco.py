_base_ = './deformable-detr_r50_irpe_16xb2-50e_coco.py'

# A number for each bucket of sampling offsets instead of a vector.
model = dict(
    positional_encoding=[
        dict(
            type='mmpe.SinePositionalEncoding', normalize=True, offset=-0.5),
        dict(type='mmpe.ImageRPE', mode='bias', shared_heads=False)
    ])
