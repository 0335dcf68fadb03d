_base_ = 'mmseg::setr/setr_vit-l_pup_8xb2-160k_ade20k-512x512.py'

# SETR's progressive upsampling on CPVT-S.
norm_cfg = dict(type='SyncBN', requires_grad=True)
auxiliary_head = [
    dict(
        type='SETRUPHead',
        in_channels=384,
        channels=256,
        in_index=i,
        num_classes=150,
        dropout_ratio=0,
        norm_cfg=norm_cfg,
        act_cfg=dict(type='ReLU'),
        num_convs=2,
        kernel_size=3,
        align_corners=False,
        loss_decode=dict(
            type='CrossEntropyLoss', use_sigmoid=False, loss_weight=0.4))
    for i in range(3)
]
model = dict(
    pretrained=None,
    data_preprocessor=dict(type='mmpe.SegDataPreProcessor'),
    backbone=dict(
        _delete_=True,
        type='mmpe.VisionTransformer',
        arch='deit-small',
        img_size=512,
        positional_encoding=[dict(type='mmpe.PEG', bias=False)],
        out_indices=(2, 5, 8, 11)),
    decode_head=dict(in_channels=384),
    auxiliary_head=auxiliary_head)
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(positional_encoding=dict(decay_mult=0.0))))
