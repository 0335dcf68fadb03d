_base_ = 'mmpretrain::deit/deit-base_16xb32_in1k-384px.py'

# Fine-tuning at 384 as CPVT's paper: 20 epochs at 5e-6, batch 512. Start from a
# model trained at 224: --cfg-options load_from=...
model = dict(
    backbone=dict(
        _delete_=True,
        type='mmpe.VisionTransformer',
        arch='deit-small',
        img_size=384,
        positional_encoding=[dict(type='mmpe.PEG', bias=False)],
        out_type='cls_token',
        drop_path_rate=0.1),
    head=dict(in_channels=384))
optim_wrapper = dict(
    optimizer=dict(lr=5e-6),
    paramwise_cfg=dict(
        custom_keys=dict(
            positional_encoding=dict(decay_mult=0.0),
            cls_token=dict(decay_mult=0.0))))
param_scheduler = [dict(type='CosineAnnealingLR', T_max=20, by_epoch=True)]
train_cfg = dict(max_epochs=20)
