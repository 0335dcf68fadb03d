"""How the tokens of a host lie."""
from dataclasses import dataclass
from functools import cached_property
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, eq=False)
class TokenGrid:
    """How the tokens of a host lie: prefix tokens, then each level row-major.

    Args:
        shapes (tuple[tuple[int, int]]): ``(h, w)`` of each level, in cells.
        mask (Tensor, optional): bool, ``(B, N)``, True is padding; the valid
            cells of each level are a rectangle that starts in its top-left
            cell. None means that every token is valid. Defaults to None.
        num_prefix (int): Class or distillation tokens in front, which are
            always valid. Defaults to 0.
        device (torch.device, optional): Where the tokens are, needed when
            there is no mask. Defaults to the mask's device.

    Raises:
        ValueError: If the mask doesn't have one entry per token.
    """
    shapes: Tuple[Tuple[int, int], ...]
    mask: Optional[Tensor] = None
    num_prefix: int = 0
    device: Optional[torch.device] = None

    def __post_init__(self) -> None:
        if self.mask is None:
            return
        object.__setattr__(self, 'device', self.mask.device)
        if self.mask.shape[1] != self.num_tokens:
            raise ValueError(
                f'mask has {self.mask.shape[1]} tokens, but the grid '
                f'{self.shapes} with {self.num_prefix} prefix tokens has '
                f'{self.num_tokens}')

    @property
    def num_tokens(self) -> int:
        return self.num_prefix + sum(h * w for h, w in self.shapes)

    def split(self, x: Tensor) -> Tuple[Tensor, List[Tensor]]:
        """Split ``(B, N, ...)`` into the prefix and ``(B, h*w, ...)`` levels.

        Raises:
            ValueError: If ``x`` doesn't have the grid's number of tokens.
        """
        if x.shape[1] != self.num_tokens:
            raise ValueError(
                f'{x.shape[1]} tokens do not fill the grid {self.shapes} with '
                f'{self.num_prefix} prefix tokens ({self.num_tokens} tokens)')
        sizes = [h * w for h, w in self.shapes]
        prefix, *levels = x.split([self.num_prefix, *sizes], dim=1)
        return prefix, levels

    def maps(self, x: Tensor) -> Tuple[Tensor, List[Tensor]]:
        """Split ``(B, N, C)`` into the prefix and ``(B, C, h, w)`` maps."""
        prefix, levels = self.split(x)
        return prefix, [
            level.transpose(1, 2).unflatten(2, shape)
            for level, shape in zip(levels, self.shapes)
        ]

    @staticmethod
    def tokens(prefix: Tensor, maps: List[Tensor]) -> Tensor:
        """Inverse of :meth:`maps`."""
        levels = [m.flatten(2).transpose(1, 2) for m in maps]
        if prefix.shape[1] == 0 and len(levels) == 1:
            return levels[0]
        return torch.cat([prefix.to(levels[0].dtype), *levels], dim=1)

    def masks(self) -> List[Optional[Tensor]]:
        """The mask of each level, ``(B, h, w)``, or None for each."""
        if self.mask is None:
            return [None] * len(self.shapes)
        return [
            level.unflatten(1, shape)
            for level, shape in zip(self.split(self.mask)[1], self.shapes)
        ]

    @cached_property
    def sizes(self) -> Optional[List[List[Tuple[int, int]]]]:
        """Height and width of each image's valid rectangle, ``[level][image]``
        in cells; None where there is no mask."""
        if self.mask is None:
            return None
        valid = [~mask for mask in self.masks()]
        sizes = torch.stack([  # moved to the CPU once for all
            torch.stack([v.any(2).sum(1), v.any(1).sum(1)], 1) for v in valid
        ]).tolist()
        return [[(h, w) for h, w in level] for level in sizes]

    def crop(self, border: int) -> 'TokenGrid':
        """The grid without ``border`` cells on each side of each level.

        Each image loses as many on each side of its valid rectangle.

        Raises:
            ValueError: If a level has no cells left.
        """
        shapes = tuple((h - 2 * border, w - 2 * border)
                       for h, w in self.shapes)
        if min(min(shape) for shape in shapes) < 1:
            raise ValueError(
                f'grid {self.shapes} is too small to lose {border} cells on '
                'each side')
        mask = self.mask
        if mask is not None:
            inner = [
                F.max_pool2d(m.float(), 2 * border + 1, 1).bool().flatten(1)
                for m in self.masks()
            ]
            mask = torch.cat([mask[:, :self.num_prefix], *inner], dim=1)
        return TokenGrid(shapes, mask, self.num_prefix, self.device)

    def crop_tokens(self, x: Tensor, border: int) -> Tensor:
        """Tokens ``(B, N, C)`` of this grid to those of :meth:`crop`."""
        prefix, maps = self.maps(x)
        b = border
        return self.tokens(prefix, [m[..., b:-b, b:-b] for m in maps])
