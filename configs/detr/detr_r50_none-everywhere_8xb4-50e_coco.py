_base_ = './detr_r50_sine_8xb4-50e_coco.py'

model = dict(positional_encoding=[], memory_positional_encoding=None)
