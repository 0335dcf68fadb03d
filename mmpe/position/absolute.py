"""What encodings that embed absolute positions share."""
from typing import Optional, Sequence

from torch import Tensor

from .base import PositionEncoding
from .grid import TokenGrid


class AbsoluteEncoding(PositionEncoding):
    """An embedding for all layers of a host, or for some.

    Args:
        layers (Sequence[int], optional): Which layers use it, in hosts whose
            layers use an embedding each. Defaults to all.

    Raises:
        ValueError: If the host doesn't have those layers.
    """

    def __init__(self,
                 layers: Optional[Sequence[int]] = None,
                 **host) -> None:
        super().__init__(**host)
        if layers is not None:
            layers = self.check_layers(layers)
        self.layers = layers

    @property
    def is_absolute(self) -> bool:
        return True

    def layer_embedding(self, i: int, pos: Optional[Tensor],
                        grid: TokenGrid) -> Optional[Tensor]:
        if self.layers is None or i not in self.layers:
            return pos
        own = self.embed(grid)
        return own if pos is None else pos + own
