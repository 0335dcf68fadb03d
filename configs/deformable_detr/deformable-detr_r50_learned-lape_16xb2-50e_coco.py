_base_ = './deformable-detr_r50_lape_16xb2-50e_coco.py'

# The tables are as large as the largest map: 1333 pixels at a stride of 8.
model = dict(
    positional_encoding=[
        dict(
            type='mmpe.LearnedPositionalEncoding',
            row_num_embed=170,
            col_num_embed=170),
        dict(type='mmpe.LaPE')
    ])
