_base_ = 'mmseg::segmenter/segmenter_vit-s_mask_8xb1-160k_ade20k-512x512.py'

# Segmenter's mask transformer on CPVT-S.
model = dict(
    pretrained=None,
    data_preprocessor=dict(type='mmpe.SegDataPreProcessor'),
    backbone=dict(
        _delete_=True,
        type='mmpe.VisionTransformer',
        arch='deit-small',
        img_size=512,
        positional_encoding=[dict(type='mmpe.PEG', bias=False)],
        drop_path_rate=0.1))
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(positional_encoding=dict(decay_mult=0.0))))
