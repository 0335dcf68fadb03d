_base_ = './deformable-detr-1scale_r50-dc5_sine_8xb4-50e_coco.py'

# The decoder has no keys, so this is none everywhere.
model = dict(positional_encoding=[])
