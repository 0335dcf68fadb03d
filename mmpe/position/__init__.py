"""What a position encoding is. Imports PyTorch and MMEngine only."""
from .absolute import AbsoluteEncoding
from .base import PositionEncoding
from .embedding import PositionEmbedding
from .grid import TokenGrid
from .irpe import ImageRPE
from .lape import LaPE
from .learned import LearnedPositionalEncoding
from .list import PositionEncodingList, as_items, check_items
from .peg import PEG
from .relative import (AxialDeepLabRPE, HuangRPE, SASARPE, ShawRPE,
                       TransformerXLRPE)
from .relative_bias import RelativePositionBias
from .sine import SinePositionalEncoding
from .terms import BucketTerm, LogitScale, PairBias, Rotation, Term

__all__ = [
    'AbsoluteEncoding', 'AxialDeepLabRPE', 'BucketTerm', 'HuangRPE',
    'ImageRPE', 'LaPE', 'LearnedPositionalEncoding', 'LogitScale', 'PEG',
    'PairBias', 'PositionEmbedding', 'PositionEncoding',
    'PositionEncodingList', 'RelativePositionBias', 'Rotation', 'SASARPE',
    'ShawRPE', 'SinePositionalEncoding', 'Term', 'TokenGrid',
    'TransformerXLRPE', 'as_items', 'check_items'
]
