_base_ = 'mmseg::vit/vit_deit-s16_mln_upernet_8xb2-160k_ade20k-512x512.py'

# Start from an image classifier: --cfg-options
# model.backbone.init_cfg.type=Pretrained
# model.backbone.init_cfg.checkpoint=FILE model.backbone.init_cfg.prefix=backbone.
model = dict(
    pretrained=None,
    data_preprocessor=dict(type='mmpe.SegDataPreProcessor'),
    backbone=dict(
        _delete_=True,
        type='mmpe.VisionTransformer',
        arch='deit-small',
        img_size=512,
        positional_encoding=[dict(type='mmpe.PositionEmbedding')],
        out_indices=(2, 5, 8, 11),
        drop_path_rate=0.1))
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(
            positional_encoding=dict(decay_mult=0.0),
            cls_token=dict(decay_mult=0.0))))
