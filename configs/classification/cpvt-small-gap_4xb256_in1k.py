_base_ = './cpvt-small_4xb256_in1k.py'

# 81.5 top-1 in the paper.
model = dict(backbone=dict(with_cls_token=False, out_type='avg_featmap'))
