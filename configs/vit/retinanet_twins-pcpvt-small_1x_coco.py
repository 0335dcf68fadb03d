_base_ = 'mmdet::retinanet/retinanet_r50_fpn_1x_coco.py'

# MMSegmentation's own Twins-PCPVT, which has a PEG after the first block of each
# stage, in a detector of MMDetection. Padding gets into its convolutions.
custom_imports = dict(imports=['mmseg.models'])
model = dict(
    backbone=dict(
        _delete_=True,
        type='mmseg.PCPVT',
        embed_dims=[64, 128, 320, 512],
        num_heads=[1, 2, 5, 8],
        patch_sizes=[4, 2, 2, 2],
        strides=[4, 2, 2, 2],
        mlp_ratios=[8, 8, 4, 4],
        out_indices=(0, 1, 2, 3),
        qkv_bias=True,
        norm_cfg=dict(type='LN', eps=1e-6),  # as its authors'
        depths=[3, 4, 6, 3],
        sr_ratios=[8, 4, 2, 1],
        norm_after_stage=False,
        drop_rate=0.0,
        attn_drop_rate=0.,
        drop_path_rate=0.2),
    neck=dict(in_channels=[64, 128, 320, 512]))
optim_wrapper = dict(
    _delete_=True,
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-4, weight_decay=1e-4))
