"""What MMSegmentation's models need; it is imported when they are built."""
from mmpe.registry import MODELS

__all__ = ['SegDataPreProcessor']


@MODELS.register_module()
def SegDataPreProcessor(**kwargs):
    """MMSegmentation's data preprocessor, which also tells mmpe's necks and
    backbones how large each image of the batch is; see
    :class:`mmpe.segmentors.data_preprocessor.SegDataPreProcessor`."""
    from .data_preprocessor import SegDataPreProcessor
    return SegDataPreProcessor(**kwargs)
