_base_ = './detr_r50_sine_16xb4-500e_coco.py'

model = dict(backbone=dict(strides=(1, 2, 2, 1), dilations=(1, 1, 1, 2)))
