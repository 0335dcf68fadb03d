"""A data preprocessor that tells necks and backbones what is padding."""
from mmdet.models.data_preprocessors import DetDataPreprocessor as _Base

from mmpe.layers.batch_shapes import record_batch
from mmpe.registry import MODELS


@MODELS.register_module()
class DetDataPreprocessor(_Base):
    """MMDetection's, which also tells mmpe's necks and backbones how large
    each image of the batch is: detectors don't hand that on to them."""

    def forward(self, data: dict, training: bool = False) -> dict:
        """Same as the base class's."""
        data = super().forward(data, training)
        if data['data_samples'] is not None:
            record_batch(data['inputs'],
                         [s.img_shape for s in data['data_samples']])
        return data
