"""What a position encoding is. Imports PyTorch and MMEngine only."""
from .base import PositionEncoding
from .grid import TokenGrid
from .irpe import ImageRPE
from .learned import LearnedPositionalEncoding
from .list import PositionEncodingList, as_items, check_items
from .peg import PEG
from .relative import HuangRPE, SASARPE, ShawRPE, TransformerXLRPE
from .sine import SinePositionalEncoding
from .terms import BucketTerm

__all__ = [
    'BucketTerm', 'HuangRPE', 'ImageRPE', 'LearnedPositionalEncoding', 'PEG',
    'PositionEncoding', 'PositionEncodingList', 'SASARPE', 'ShawRPE',
    'SinePositionalEncoding', 'TokenGrid', 'TransformerXLRPE', 'as_items', 'check_items'
]
