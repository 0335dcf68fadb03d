_base_ = './deformable-detr-1scale_r50_sine_8xb4-50e_coco.py'

# Dilation instead of the last stride: four times the tokens. MMDetection's
# ResNet also dilates that stage's first block, torchvision's, which the
# published models are made of, and MMSegmentation's do not.
custom_imports = dict(imports=['mmseg.models'])
model = dict(
    backbone=dict(
        type='mmseg.ResNet',
        strides=(1, 2, 2, 1),
        dilations=(1, 1, 1, 2),
        contract_dilation=True))
