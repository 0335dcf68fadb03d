_base_ = './detr_r50_irpe_8xb2-150e_coco.py'

# The recipe of iRPE's DETR with Axial-DeepLab's encoding; no paper has these
# numbers.
model = dict(
    positional_encoding=[
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.AxialDeepLabRPE')
    ])
