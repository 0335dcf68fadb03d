_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# 42.2 AP as published.
max_epochs = 300
train_cfg = dict(max_epochs=max_epochs)
param_scheduler = [
    dict(type='MultiStepLR', end=max_epochs, milestones=[200], gamma=0.1)
]
