_base_ = './deit-tiny_4xb256_in1k.py'

# LaPE's official code: each query's biases are normalised.
model = dict(
    backbone=dict(
        positional_encoding=[dict(type='mmpe.RelativePositionBias', layer_norm=True)]))
