"""What a position encoding is. Imports PyTorch and MMEngine only."""
from .base import PositionEncoding, TokenGrid
from .learned import LearnedPositionalEncoding
from .list import PositionEncodingList, as_items
from .peg import PEG
from .sine import SinePositionalEncoding

__all__ = [
    'LearnedPositionalEncoding', 'PEG', 'PositionEncoding',
    'PositionEncodingList', 'SinePositionalEncoding', 'TokenGrid', 'as_items'
]
