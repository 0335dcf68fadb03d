_base_ = 'vit_sine_coco16.py'
model = dict(backbone=dict(positional_encoding=[dict(type='mmpe.PEG')]))
