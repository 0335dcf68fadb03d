_base_ = './deformable-detr-1scale_r50_sine_8xb4-50e_coco.py'

# Dilation instead of the last stride: four times the tokens. MMDetection also
# dilates that stage's first block, torchvision and the official code do not.
model = dict(backbone=dict(strides=(1, 2, 2, 1), dilations=(1, 1, 1, 2)))
