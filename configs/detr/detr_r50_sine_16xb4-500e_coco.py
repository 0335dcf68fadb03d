_base_ = './detr_r50_sine_8xb4-50e_coco.py'

# DETR's own long schedule (https://arxiv.org/abs/2005.12872, sec. 4 and A.4):
# 16 GPUs with 4 images each, lr 1e-4, the backbone's 1e-5, x0.1 at epoch 400.
# MMDetection's 500 epochs have batch 16 and the drop at epoch 334.
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys={'backbone': dict(lr_mult=0.1)}))
max_epochs = 500
train_cfg = dict(max_epochs=max_epochs, val_interval=10)
param_scheduler = [
    dict(type='MultiStepLR', end=max_epochs, milestones=[400], gamma=0.1)
]
default_hooks = dict(checkpoint=dict(max_keep_ckpts=2))
auto_scale_lr = dict(base_batch_size=64)
