"""Rows of published tables, to be shown beside one's own.

AP of boxes on COCO's val2017, in percent. They come from other code, other
recipes and one seed each: they are no baseline.
"""
from dataclasses import dataclass
from typing import Optional, Tuple

_CPVT = 'CPVT, https://arxiv.org/abs/2102.10882v1'
_IRPE = ('iRPE, https://github.com/microsoft/Cream/tree/main/iRPE/'
         'DETR-with-iRPE')
_IRPE_PAPER = 'iRPE, https://arxiv.org/abs/2107.14222'
_DETR_PAPER = 'DETR, https://arxiv.org/abs/2005.12872'
_DETR = 'DETR, https://github.com/facebookresearch/detr'
_DEFORMABLE = ('Deformable DETR, '
               'https://github.com/fundamentalvision/Deformable-DETR')
_ZOO = 'MMDetection, https://github.com/open-mmlab/mmdetection'


@dataclass(frozen=True)
class PublishedRow:
    """A row of a table; None where it has no number.

    Args:
        method (str): The detector.
        encoding (str): In the words of
            :func:`mmpe.evaluation.encodings.encodings_in_words`, as far as
            the source tells.
        epochs (int, optional): Of the training.
        source (str): Name and address.
        ap (float): AP; then at 0.5 and 0.75, of small, medium and large
            objects.
        parameters (float, optional): In millions.
        gflops (float, optional): Of one forward.
    """
    method: str
    encoding: str
    epochs: Optional[int]
    source: str
    ap: float
    ap50: Optional[float] = None
    ap75: Optional[float] = None
    ap_small: Optional[float] = None
    ap_medium: Optional[float] = None
    ap_large: Optional[float] = None
    parameters: Optional[float] = None
    gflops: Optional[float] = None


_R50, _DC5 = 'DETR R50', 'DETR R50-DC5'
_ONE = 'Deformable DETR R50, single scale'
_ONE_DC5 = 'Deformable DETR R50-DC5, single scale'
_MANY = 'Deformable DETR R50'
_IRPE_19 = 'sine + iRPE (product, contextual, k, ratio 1.9)'
_IRPE_20 = 'sine + iRPE (product, contextual, k)'

ROWS: Tuple[PublishedRow, ...] = (
    PublishedRow('FCOS', 'none', 36, _CPVT,
                 41.0, 59.8, 44.1, 26.2, 44.6, 52.2),
    PublishedRow('Faster R-CNN', 'none', 109, _CPVT,
                 42.0, 62.1, 45.5, 26.6, 45.4, 53.4, 42),
    PublishedRow(_R50, 'sine', 500, _CPVT,
                 42.0, 62.4, 44.2, 20.5, 45.8, 61.1, 41),
    PublishedRow(_DC5, 'sine', 500, _CPVT,
                 43.3, 63.1, 45.9, 22.5, 47.3, 61.1, 41),
    PublishedRow(_R50, 'none', 50, _CPVT,
                 32.8, 54.0, 33.5, 13.7, 35.5, 50.5, 41),
    PublishedRow(_R50, 'sine', 50, _CPVT,
                 33.7, 54.5, 34.7, 13.2, 35.8, 51.5, 41),
    PublishedRow(_R50, 'PEG', 50, _CPVT, 33.9, parameters=41),
    PublishedRow(_ONE, 'sine', 50, _CPVT, 39.4, None, None,
                 20.6, 43.0, 55.0, 34),
    PublishedRow(_DC5, 'sine', 50, _CPVT,
                 35.3, 55.7, 36.8, 15.2, 37.5, 53.6, 41),
    PublishedRow(_ONE_DC5, 'sine', 50, _CPVT,
                 41.5, 61.5, 44.8, 24.1, 45.3, 56.0, 34),
    PublishedRow(_R50, 'sine', 300, _DETR_PAPER, 40.6),
    PublishedRow(_R50, 'none', 300, _DETR_PAPER, 39.3),
    PublishedRow(_R50, "none; decoder's keys: none", 300, _DETR_PAPER, 32.8),
    PublishedRow(_R50, _IRPE_19, 150, _IRPE,
                 40.9, 61.4, 42.9, 19.5, 44.3, 60.5),
    PublishedRow(_R50, _IRPE_20, 150, _IRPE,
                 41.0, 61.5, 43.4, 19.2, 44.5, 60.8),
    PublishedRow(_R50, _IRPE_20, 300, _IRPE,
                 42.2, 62.3, 44.6, 20.5, 45.7, 61.3),
    PublishedRow(_R50, 'sine', 150, _IRPE_PAPER, 39.5),
    PublishedRow(_R50, 'sine', 300, _IRPE_PAPER, 40.6),
    PublishedRow(_R50, 'no absolute, no relative', 150, _IRPE_PAPER, 30.4),
    PublishedRow(_R50, 'iRPE (product, contextual, k), no absolute', 150,
                 _IRPE_PAPER, 38.7),
    PublishedRow(_R50, 'sine + iRPE (product, bias, k)', 150, _IRPE_PAPER,
                 40.6),
    PublishedRow(_R50, 'sine + iRPE (product, contextual, k, clip)', 150,
                 _IRPE_PAPER, 40.4),
    PublishedRow(_R50, _IRPE_20, 150, _IRPE_PAPER, 40.8),
    PublishedRow(_R50, 'sine + iRPE (product, contextual, k, ratio 3.5)', 150,
                 _IRPE_PAPER, 40.8),
    PublishedRow(_R50, 'sine', 500, _DETR, 42.0),
    PublishedRow(_DC5, 'sine', 500, _DETR, 43.3),
    PublishedRow('DETR R101', 'sine', 500, _DETR, 43.5),
    PublishedRow('DETR R101-DC5', 'sine', 500, _DETR, 44.9),
    PublishedRow(_ONE, 'sine', 50, _DEFORMABLE, 39.4, None, None,
                 20.6, 43.0, 55.5, 34, 78),
    PublishedRow(_ONE_DC5, 'sine', 50, _DEFORMABLE, 41.5, None, None,
                 24.1, 45.3, 56.0, 34, 128),
    PublishedRow(_MANY, 'sine', 50, _DEFORMABLE, 44.5, None, None,
                 27.1, 47.6, 59.6, 40, 173),
    PublishedRow(f'{_MANY}, refined', 'sine', 50, _DEFORMABLE, 46.2, None,
                 None, 28.3, 49.2, 61.5, 41),
    PublishedRow(f'{_MANY}, refined, two-stage', 'sine', 50, _DEFORMABLE,
                 46.9, None, None, 29.6, 50.1, 61.6, 41),
    PublishedRow(_R50, 'sine', 500, _DEFORMABLE, 42.0, None, None,
                 20.5, 45.8, 61.1, 41, 86),
    PublishedRow(_R50, 'sine', 150, _ZOO, 39.9),
    PublishedRow(_MANY, 'sine', 50, _ZOO, 44.3),
    PublishedRow(f'{_MANY}, refined', 'sine', 50, _ZOO, 46.2),
    PublishedRow(f'{_MANY}, refined, two-stage', 'sine', 50, _ZOO, 47.0),
    PublishedRow('DINO R50, 4 scales', 'sine', 12, _ZOO, 49.0),
)
