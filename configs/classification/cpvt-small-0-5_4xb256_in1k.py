_base_ = './deit-small_4xb256_in1k.py'

# Five separable PEGs; 80.5 top-1 in the paper.
model = dict(
    backbone=dict(positional_encoding=[
        dict(
            type='mmpe.PEG', kind='separable', positions=(0, 1, 2, 3, 4))
    ]))
