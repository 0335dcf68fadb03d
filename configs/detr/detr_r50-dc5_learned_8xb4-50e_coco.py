_base_ = './detr_r50-dc5_sine_8xb4-50e_coco.py'

# An image of up to 1333 pixels has up to 84 cells of 16 pixels on a side.
model = dict(
    positional_encoding=[
        dict(
            type='mmpe.LearnedPositionalEncoding',
            row_num_embed=84,
            col_num_embed=84)
    ])
