_base_ = './detr_r50-dc5_sine_8xb4-50e_coco.py'

# None in the encoder; the keys of the decoder's cross-attention keep the sine.
model = dict(positional_encoding=[])
