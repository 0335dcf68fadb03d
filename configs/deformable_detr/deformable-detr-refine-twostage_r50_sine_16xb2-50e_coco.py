_base_ = './deformable-detr_r50_sine_16xb2-50e_coco.py'

model = dict(with_box_refine=True, as_two_stage=True)
