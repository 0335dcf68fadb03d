_base_ = './deit-tiny_4xb256_in1k.py'

# The mean of the patches instead of a class token.
model = dict(backbone=dict(with_cls_token=False, out_type='avg_featmap'))
