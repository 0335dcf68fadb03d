_base_ = 'mmdet::detr/detr_r50_8xb2-150e_coco.py'

# The recipe of CPVT's detection table (https://arxiv.org/abs/2102.10882v1):
# batch 32 for 50 epochs, lr 1e-4, the backbone's 2e-5, all x0.1 at epoch 40.
# The other configs of this folder inherit it and swap the encoding.
model = dict(
    type='mmpe.DETR',
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True)
    ])
train_dataloader = dict(batch_size=4)
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={
            'backbone': dict(lr_mult=0.2),
            'positional_encoding': dict(decay_mult=0.0)
        }))
max_epochs = 50
train_cfg = dict(max_epochs=max_epochs)
param_scheduler = [
    dict(type='MultiStepLR', end=max_epochs, milestones=[40], gamma=0.1)
]
auto_scale_lr = dict(base_batch_size=32)
