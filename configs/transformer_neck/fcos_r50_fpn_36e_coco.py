_base_ = 'mmdet::fcos/fcos_r50-caffe_fpn_gn-head_1x_coco.py'

# A row that CPVT's detection table compares with, 36 epochs, without a
# transformer: what the other configs of this folder add one to.
train_cfg = dict(max_epochs=36)
param_scheduler = [
    dict(
        type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(
        type='MultiStepLR',
        begin=0,
        end=36,
        by_epoch=True,
        milestones=[27, 33],
        gamma=0.1)
]
