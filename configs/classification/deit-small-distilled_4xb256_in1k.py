_base_ = './deit-small_4xb256_in1k.py'

# As MMPretrain's config of this name: for evaluation, it has no teacher.
model = dict(
    backbone=dict(with_dist_token=True),
    head=dict(
        _delete_=True,
        type='DeiTClsHead',
        num_classes=1000,
        in_channels=384,
        loss=dict(
            type='LabelSmoothLoss', label_smooth_val=0.1, mode='original')))
