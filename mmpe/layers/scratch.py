"""Memory that is used again."""
from typing import Dict

from torch import Tensor


class Scratch:
    """Buffers by name, made once.

    A loop that allocates a large tensor in each turn gets fresh pages from
    the system each time, and on a CPU that takes longer than to fill them.

    Args:
        like (Tensor): Its type and device are the buffers'.
    """

    def __init__(self, like: Tensor) -> None:
        self._like = like
        self.dtype = like.dtype
        self._buffers: Dict[str, Tensor] = {}

    def __call__(self, name: str, *shape: int) -> Tensor:
        """The buffer ``name`` in this shape, with whatever it holds."""
        count = 1
        for n in shape:
            count *= n
        buffer = self._buffers.get(name)
        if buffer is None or buffer.numel() < count:
            buffer = self._buffers[name] = self._like.new_empty(count)
        return buffer[:count].view(shape)
