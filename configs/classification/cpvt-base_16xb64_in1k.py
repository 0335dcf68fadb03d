_base_ = './deit-base_16xb64_in1k.py'

# One PEG after the first block and no table.
model = dict(
    backbone=dict(positional_encoding=[dict(type='mmpe.PEG', bias=False)]))
