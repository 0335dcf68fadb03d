"""Deformable DETR with a list of position encodings."""
from mmdet.models.detectors import DeformableDETR as _DeformableDETR
from torch import Tensor

from mmpe.layers import DeformableDetrEncoderLayer
from mmpe.registry import MODELS
from .mixin import PositionEncodingMixin


@MODELS.register_module()
class DeformableDETR(PositionEncodingMixin, _DeformableDETR):
    """MMDetection's Deformable DETR with a list of position encodings.

    Single scale, multi-scale, box refinement and two stages, as there. The
    level embedding stays whatever the list is: it tells levels apart and is no
    position.

    Args:
        positional_encoding (list[dict] | dict): See
            :class:`PositionEncodingMixin`.
    """
    encoder_layer = DeformableDetrEncoderLayer
    embeds_more = True

    @staticmethod
    def get_valid_ratio(mask: Tensor) -> Tensor:
        """MMDetection's, but not zero for a wholly padded image, whose
        reference points would be 0 / 0."""
        h, w = mask.shape[-2:]
        ratio = _DeformableDETR.get_valid_ratio(mask)
        return ratio.maximum(ratio.new_tensor([1 / w, 1 / h]))
