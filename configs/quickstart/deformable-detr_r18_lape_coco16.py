_base_ = 'deformable-detr_r18_sine_coco16.py'
model = dict(positional_encoding=[
    dict(type='mmpe.SinePositionalEncoding', normalize=True, offset=-0.5),
    dict(type='mmpe.LaPE')
])
