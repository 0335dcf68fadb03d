"""What a position encoding is. Imports PyTorch and MMEngine only."""
from .base import PositionEncoding
from .grid import TokenGrid
from .irpe import ImageRPE
from .learned import LearnedPositionalEncoding
from .list import PositionEncodingList, as_items, check_items
from .peg import PEG
from .relative import (AxialDeepLabRPE, HuangRPE, SASARPE, ShawRPE,
                       TransformerXLRPE)
from .relative_bias import RelativePositionBias
from .sine import SinePositionalEncoding
from .terms import BucketTerm, LogitScale, Rotation, Term

__all__ = [
    'AxialDeepLabRPE', 'BucketTerm', 'HuangRPE', 'ImageRPE',
    'LearnedPositionalEncoding', 'LogitScale', 'PEG', 'PositionEncoding',
    'PositionEncodingList', 'RelativePositionBias', 'Rotation', 'SASARPE',
    'ShawRPE', 'SinePositionalEncoding', 'Term', 'TokenGrid',
    'TransformerXLRPE', 'as_items', 'check_items'
]
