_base_ = './detr_r50_learned_8xb4-50e_coco.py'

# LaPE in DETR is ours: no paper has it.
model = dict(
    positional_encoding=[
        dict(type='mmpe.LearnedPositionalEncoding'),
        dict(type='mmpe.LaPE', decoder=True)
    ])
