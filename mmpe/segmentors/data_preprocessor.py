"""A data preprocessor that tells necks and backbones what is padding."""
from mmseg.models.data_preprocessor import SegDataPreProcessor as _Base

from mmpe.layers.batch_shapes import record_batch


class SegDataPreProcessor(_Base):
    """MMSegmentation's, which also tells mmpe's necks and backbones how large
    each image of the batch is."""

    def forward(self, data: dict, training: bool = False) -> dict:
        """Same as the base class's."""
        sizes = [tuple(image.shape[-2:]) for image in data['inputs']]
        data = super().forward(data, training)
        # Augmentation of a batch, if there is one, keeps its canvas.
        record_batch(data['inputs'], sizes)
        return data
