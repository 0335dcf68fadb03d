_base_ = './upernet_deit-small-learned_8xb2-160k_ade20k-512x512.py'

# One PEG after the first block and no table.
model = dict(
    backbone=dict(positional_encoding=[
        dict(type='mmpe.PEG', bias=False)
    ]))
