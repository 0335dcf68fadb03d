_base_ = './detr_r50_sine_8xb4-50e_coco.py'

# An image of up to 1333 pixels has up to 42 cells of 32 pixels on a side.
model = dict(
    positional_encoding=[dict(type='mmpe.LearnedPositionalEncoding')])
