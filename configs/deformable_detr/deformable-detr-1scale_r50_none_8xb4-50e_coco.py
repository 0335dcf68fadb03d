_base_ = './deformable-detr-1scale_r50_sine_8xb4-50e_coco.py'

# The decoder has no keys, so this is none everywhere.
model = dict(positional_encoding=[])
