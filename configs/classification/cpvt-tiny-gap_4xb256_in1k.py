_base_ = './cpvt-tiny_4xb256_in1k.py'

# 74.9 top-1 in the paper.
model = dict(backbone=dict(with_cls_token=False, out_type='avg_featmap'))
