_base_ = './detr_r50_sine_8xb4-50e_coco.py'

# LaPE in DETR is ours: no paper has it. Each encoder layer normalises the
# embedding that it adds to queries and keys; so does each decoder layer for its
# keys.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.LaPE', decoder=True)
    ])
