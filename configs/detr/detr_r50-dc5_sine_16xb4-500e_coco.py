_base_ = './detr_r50_sine_16xb4-500e_coco.py'

# As detr_r50-dc5_sine_8xb4-50e_coco.py.
custom_imports = dict(imports=['mmseg.models'])
model = dict(
    backbone=dict(
        type='mmseg.ResNet',
        strides=(1, 2, 2, 1),
        dilations=(1, 1, 1, 2),
        contract_dilation=True))
