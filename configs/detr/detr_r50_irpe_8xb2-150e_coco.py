_base_ = 'mmdet::detr/detr_r50_8xb2-150e_coco.py'

# iRPE's published DETR (https://github.com/microsoft/Cream, iRPE/DETR-with-iRPE):
# product map, contextual, on keys, heads share tables, beside the sine. With
# ratio 2.0 (9x9 buckets) it has 41.0 AP. Tables filled by Xavier's rule as there.
# The other configs of this name change what their name says.
model = dict(
    type='mmpe.DETR',
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.ImageRPE', ratio=2.0, init='xavier')
    ])
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys={'positional_encoding': dict(decay_mult=0.0)}))
