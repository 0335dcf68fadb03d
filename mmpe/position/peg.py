"""CPVT's position encoding generator, with mask."""
from typing import Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from mmpe.registry import MODELS
from .base import PositionEncoding
from .grid import TokenGrid
from .valid_norm import build_valid_norm


@MODELS.register_module()
class PEG(PositionEncoding):
    """Position encoding generator: a convolution over the valid cells.

    At each of ``positions`` the tokens become ``x + f(x)``, f a convolution
    whose zero padding begins where the image ends, also where that is in the
    middle of a padded batch. Padded cells and prefix tokens pass unchanged.

    Paper: `Conditional Positional Encodings for Vision Transformers
    <https://arxiv.org/abs/2102.10882>`_, sec. 3.2; the form for detection is in
    the appendix of the first version.

    Note:
        That appendix lets the values of padded cells into the convolution and
        into the batch norm's statistics. Here neither happens, so the
        published 33.9 AP comes from a form that isn't offered.

        On several levels, each level is convolved by itself with the same
        weights: what the kernel learns (to tell a border from the inside) is a
        matter of cells, not of scale, and a checkpoint then fits any number of
        levels. Normalisation statistics are over the valid cells of all
        levels.

    Args:
        kernel_size (int): Odd. Defaults to 3.
        positions (Sequence[int]): After which layers, each with weights of
            its own; -1 is before layer 0. Defaults to ``(0, )``.
        num_convs (int): How many are stacked at each position, each with its
            skip. Defaults to 1.
        kind (str): ``'depthwise'``, ``'separable'`` (depthwise, then 1x1) or
            ``'dense'``. Defaults to ``'depthwise'``.
        bias (bool): Defaults to True.
        norm_cfg (dict, optional): ``BN``, ``SyncBN`` or ``LN`` after each
            convolution. Defaults to None.
        act_cfg (dict, optional): An activation of ``torch.nn`` after that.
            Defaults to None.
        zero_padding (bool): If False, each convolution takes away the border
            cells instead: the grid shrinks, which detectors can't use.
            Defaults to True.
        trainable (bool): If False, weights stay as they were initialised or
            loaded. Defaults to True.

    Raises:
        ValueError: If an argument has a value other than those above, or a
            position is past the host's last layer.
    """
    name = 'peg'

    def __init__(self,
                 kernel_size: int = 3,
                 positions: Sequence[int] = (0, ),
                 num_convs: int = 1,
                 kind: str = 'depthwise',
                 bias: bool = True,
                 norm_cfg: Optional[dict] = None,
                 act_cfg: Optional[dict] = None,
                 zero_padding: bool = True,
                 trainable: bool = True,
                 **host) -> None:
        super().__init__(**host)
        if not isinstance(num_convs, int) or num_convs < 1:
            raise ValueError(
                f'num_convs must be a positive number, got {num_convs!r}')
        for name, cfg in dict(norm_cfg=norm_cfg, act_cfg=act_cfg).items():
            if not isinstance(cfg, dict) and cfg is not None:
                raise ValueError(f'{name} must be a dict such as '
                                 f"dict(type='BN'), got {cfg!r}")
        self.positions = self._check_positions(positions)
        self.num_convs = num_convs
        self.zero_padding = zero_padding
        self.trainable = trainable
        self.blocks = nn.ModuleList(
            nn.ModuleList(
                ValidConv(self.embed_dims, kernel_size, kind, bias, norm_cfg,
                          act_cfg, zero_padding) for _ in range(num_convs))
            for _ in self.positions)
        if not trainable:
            self.requires_grad_(False)

    def _check_positions(self, positions: Sequence[int]) -> Tuple[int, ...]:
        try:
            positions = tuple(positions)
        except TypeError:
            raise ValueError(
                f'positions must be a list of layers such as [0], got '
                f'{positions!r}') from None
        last = self.num_layers - 1
        wrong = [p for p in positions if p not in range(-1, last + 1)]
        if wrong or not positions or len(set(positions)) < len(positions):
            raise ValueError(
                f'positions must be distinct layers from -1 (before layer 0) '
                f'to {last} (after the last), got {list(positions)}')
        return positions

    def init_weights(self) -> None:
        """PyTorch's defaults for convolutions, as the paper's listings."""
        for module in self.modules():
            if module is not self and hasattr(module, 'reset_parameters'):
                module.reset_parameters()
        super().init_weights()

    def train(self, mode: bool = True) -> 'PEG':
        # The statistics of a frozen encoding are frozen with it.
        return super().train(mode and self.trainable)

    def between(self, i: int, x: Tensor, pos: Optional[Tensor],
                grid: TokenGrid) -> Tuple[Tensor, Optional[Tensor]]:
        if i in self.positions:
            for conv in self.blocks[self.positions.index(i)]:
                if pos is not None and conv.border:
                    pos = grid.crop_tokens(pos, conv.border)
                x, grid = conv(x, grid)
        return x, pos

    def regrid(self, i: int, grid: TokenGrid) -> TokenGrid:
        if i not in self.positions:
            return grid
        border = sum(conv.border for conv in self.blocks[0])
        return grid.crop(border) if border else grid

    @property
    def keeps_grid(self) -> bool:
        return all(conv.border == 0 for conv in self.blocks[0])


class ValidConv(nn.Module):
    """``x + act(norm(conv(x)))`` on valid cells; see :class:`PEG`."""

    def __init__(self, channels: int, kernel_size: int, kind: str, bias: bool,
                 norm_cfg: Optional[dict], act_cfg: Optional[dict],
                 zero_padding: bool) -> None:
        super().__init__()
        if (not isinstance(kernel_size, int) or kernel_size % 2 != 1
                or kernel_size < 1):
            raise ValueError(
                'kernel_size must be a positive odd number, got '
                f'{kernel_size!r}')
        if kind not in ('depthwise', 'separable', 'dense'):
            raise ValueError("kind must be 'depthwise', 'separable' or "
                             f"'dense', got {kind!r}")
        padding = kernel_size // 2 if zero_padding else 0
        self.border = kernel_size // 2 - padding
        self.conv = nn.Conv2d(
            channels,
            channels,
            kernel_size,
            padding=padding,
            groups=1 if kind == 'dense' else channels,
            bias=bias)
        self.pointwise = (
            nn.Conv2d(channels, channels, 1, bias=bias)
            if kind == 'separable' else None)
        self.norm = build_valid_norm(norm_cfg, channels) if norm_cfg else None
        self.act = _build_activation(act_cfg) if act_cfg else None

    def forward(self, x: Tensor, grid: TokenGrid) -> Tuple[Tensor, TokenGrid]:
        """Tokens ``(B, N, C)`` and the grid that they lie on afterwards."""
        # Fill, not multiply: whatever padding holds, inf too, must not pass.
        cells = x if grid.mask is None else x.masked_fill(
            grid.mask[..., None], 0)
        maps = grid.maps(cells)[1]
        if self.border:
            x = grid.crop_tokens(x, self.border)
            grid = grid.crop(self.border)
        y = grid.tokens(x[:, :0], [self._convolve(m) for m in maps])
        mask = None if grid.mask is None else grid.mask[:, grid.num_prefix:]
        if self.norm is not None:
            y = self.norm(y, mask)
        if self.act is not None:
            y = self.act(y)
        if mask is not None:
            y = y.masked_fill(mask[..., None], 0)
        if grid.num_prefix:
            prefix, cells = x[:, :grid.num_prefix], x[:, grid.num_prefix:]
            return torch.cat([prefix, cells + y], dim=1), grid
        return x + y, grid

    def _convolve(self, x: Tensor) -> Tensor:
        x = self.conv(x)
        return x if self.pointwise is None else self.pointwise(x)


def _build_activation(cfg: dict) -> nn.Module:
    cfg = dict(cfg)
    kind = cfg.pop('type', None)
    cls = getattr(nn, str(kind), None)
    if not (isinstance(cls, type) and issubclass(cls, nn.Module)):
        raise ValueError(
            f'act_cfg: torch.nn has no activation {kind!r}; ReLU, GELU, ...')
    return cls(**cfg)
