"""What flows beside the tokens of a host."""
from typing import List, Optional

import torch
from torch import Tensor

from mmpe.position import PositionEncoding, Term, TokenGrid


class PositionStream:
    """What flows beside the tokens through the layers of one forward pass.

    Every value is kept under its layer rather than overwritten, so that a
    layer which is run again for a checkpoint's backward finds what it had.

    Args:
        encoding (PositionEncoding): What acts between the layers.
        grid (TokenGrid): How the tokens lie.
        pos (Tensor, optional): The absolute embedding, ``(B or 1, N, C)``.
    """

    def __init__(self, encoding: PositionEncoding, grid: TokenGrid,
                 pos: Optional[Tensor]) -> None:
        self.encoding = encoding
        self._grids = {-1: grid}
        self._pos = {-1: pos}

    def enter(self, i: int, x: Tensor) -> Tensor:
        """Tokens for layer ``i``, changed before layer 0 only."""
        if i > 0:
            return x
        grid = self._grids[-1]
        x, self._pos[0] = self.encoding.between(-1, x, self._pos[-1], grid)
        self._grids[0] = self.encoding.regrid(-1, grid)
        return x

    def leave(self, i: int, x: Tensor) -> Tensor:
        """Tokens after layer ``i``."""
        grid = self._grids[i]
        x, self._pos[i + 1] = self.encoding.between(i, x, self._pos[i], grid)
        self._grids[i + 1] = self.encoding.regrid(i, grid)
        return x

    def pos(self, i: int) -> Optional[Tensor]:
        """The embedding that layer ``i`` uses; for -1, that of the list."""
        if i < 0:
            return self._pos[-1]
        return self.encoding.layer_embedding(i, self._pos[i], self._grids[i])

    def terms(self, i: int, grid: Optional[TokenGrid] = None) -> List[Term]:
        """What layer ``i``'s attention takes, on its tokens' grid or on
        another that it has."""
        grid = grid or self._grids[i]
        with torch.autocast(grid.device.type, enabled=False):
            return self.encoding.terms(i, grid)

    def grid(self, i: int) -> TokenGrid:
        """The grid of the tokens that layer ``i`` sees."""
        return self._grids[i]
