"""What a position encoding is: the grid it is asked about and the protocol."""
from dataclasses import dataclass
from typing import List, Optional, Tuple

import torch
from mmengine.model import BaseModule
from torch import Tensor

from .terms import BucketTerm


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

    def crop(self, border: int) -> 'TokenGrid':
        """The grid without ``border`` cells on each side of each level.

        A cell of the smaller grid is padding if the cell it came from was.

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
                m[:, border:border + h, border:border + w].flatten(1)
                for m, (h, w) in zip(self.masks(), shapes)
            ]
            mask = torch.cat([mask[:, :self.num_prefix], *inner], dim=1)
        return TokenGrid(shapes, mask, self.num_prefix, self.device)


class PositionEncoding(BaseModule):
    """Base class of all position encodings.

    A host asks an encoding for up to three things, each of which an encoding
    may leave as it is here. Encodings know nothing of hosts, and hosts know
    nothing of particular encodings.

    Args:
        embed_dims (int): Width of the tokens. Comes from the host.
        num_heads (int): Attention heads. Comes from the host.
        num_layers (int): Layers that the encoding serves. Comes from the host.
        num_prefix (int): Tokens in front of the grid. Comes from the host.
            Defaults to 0.
        init_cfg (dict, optional): MMEngine's initialisation config, applied
            after the encoding's own initial values. Defaults to None.
    """

    name: Optional[str] = None
    """Under which name parameters appear in state dicts; the class's if None.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 num_layers: int,
                 num_prefix: int = 0,
                 init_cfg: Optional[dict] = None) -> None:
        super().__init__(init_cfg)
        self.embed_dims = embed_dims
        self.num_heads = num_heads
        self.num_layers = num_layers
        self.num_prefix = num_prefix

    def embed(self, grid: TokenGrid) -> Optional[Tensor]:
        """An absolute embedding in float32, ``(B or 1, N, C)``, or None."""

    def between(self, i: int, x: Tensor, pos: Optional[Tensor],
                grid: TokenGrid) -> Tuple[Tensor, Optional[Tensor]]:
        """Change the tokens or the embedding after layer ``i``.

        Args:
            i (int): The layer just left; -1 before layer 0.
            x (Tensor): Tokens, ``(B, N, C)``.
            pos (Tensor, optional): The embedding that layer ``i`` used,
                ``(B or 1, N, C)``.
            grid (TokenGrid): The grid of ``x``.

        Returns:
            tuple[Tensor, Tensor]: Tokens and embedding for the next layer.
        """
        return x, pos

    def terms(self, i: int, grid: TokenGrid) -> List[BucketTerm]:
        """What the attention of layer ``i`` does with offsets."""
        return []

    def regrid(self, i: int, grid: TokenGrid) -> TokenGrid:
        """The grid of the tokens that :meth:`between` returns."""
        return grid

    @property
    def is_absolute(self) -> bool:
        """Whether :meth:`embed` gives an embedding."""
        return type(self).embed is not PositionEncoding.embed

    @property
    def is_relative(self) -> bool:
        """Whether :meth:`terms` gives any."""
        return type(self).terms is not PositionEncoding.terms

    @property
    def keeps_grid(self) -> bool:
        """Whether the tokens stay as many as they are."""
        return True
