"""A short training in which much happens that a resumed run could miss."""
_base_ = 'tiny_detr.py'

# Random numbers in the model and, by the flips, in the data workers.
model = dict(
    positional_encoding=[
        dict(
            type='mmpe.PEG',
            bias=False,
            norm_cfg=dict(type='BN'),
            act_cfg=dict(type='ReLU')),
    ],
    encoder=dict(layer_cfg=dict(ffn_cfg=dict(ffn_drop=0.1))))
pipeline = _base_.pipeline[:]
pipeline.insert(-1, dict(type='RandomFlip', prob=0.5))
pipeline[-1] = dict(
    type='PackDetInputs',
    meta_keys=('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor',
               'flip', 'flip_direction'))
train_dataloader = dict(
    num_workers=1,
    persistent_workers=True,
    dataset=dict(pipeline=pipeline, indices=12))

# Three steps an epoch, of which one waits for the next epoch or is lost.
optim_wrapper = dict(
    accumulative_counts=2, clip_grad=dict(max_norm=1.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=5),
    dict(type='MultiStepLR', by_epoch=True, milestones=[2]),
]
train_cfg = dict(max_epochs=4, val_interval=1)
default_hooks = dict(
    checkpoint=dict(
        type='CheckpointHook',
        max_keep_ckpts=2,
        save_best='scores',
        rule='less'))
val_evaluator = dict(_delete_=True, type='forked_runs.Scores')
custom_hooks = [
    dict(
        type='EMAHook',
        ema_type='ExpMomentumEMA',
        momentum=0.1,
        update_buffers=True),
    dict(type='forked_runs.Progress', file='/dev/null'),
]
