_base_ = './deit-tiny_4xb256_in1k.py'

# One PEG after the first block and no table; 72.4 top-1 in the paper.
model = dict(
    backbone=dict(positional_encoding=[dict(type='mmpe.PEG', bias=False)]))
