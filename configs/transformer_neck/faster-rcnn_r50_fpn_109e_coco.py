_base_ = 'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py'

# A row that CPVT's detection table compares with, 109 epochs, without a
# transformer: what the other configs of this folder add one to.
train_cfg = dict(max_epochs=109)
param_scheduler = [
    dict(
        type='LinearLR', start_factor=0.001, by_epoch=False, begin=0, end=500),
    dict(
        type='MultiStepLR',
        begin=0,
        end=109,
        by_epoch=True,
        milestones=[72, 99],
        gamma=0.1)
]
