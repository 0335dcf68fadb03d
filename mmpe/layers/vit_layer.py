"""A pre-norm encoder layer that position encodings can act on."""
from typing import Optional, Sequence

from mmcv.cnn import build_norm_layer
from mmcv.cnn.bricks.transformer import FFN
from mmengine.model import BaseModule
from torch import Tensor

from mmpe.position import Term, TokenGrid
from .attention import MultiheadAttention
from .windows import Windows

JOINS = ('input', 'shared', 'query_key', 'attention')


class ViTLayer(BaseModule):
    """x += MSA(LN(x)), x += MLP(LN(x)), with an embedding in one of its ways.

    Args:
        embed_dims (int): Width.
        num_heads (int): Attention heads.
        feedforward_channels (int): Hidden width of the MLP.
        join (str): Where the layer adds its embedding: ``'query_key'``, to
            queries and keys; ``'attention'``, to the attention's input, which
            values come from, too; ``'shared'``, to the tokens; ``'input'``,
            nowhere.
        drop_path (float): Probability of leaving out a branch.
            Defaults to 0.
        window_size (int, optional): Height and width of windows that attend
            to themselves. Defaults to None: all tokens to all.
        norm_cfg (dict): Defaults to ``dict(type='LN', eps=1e-6)``.
    """

    def __init__(self,
                 embed_dims: int,
                 num_heads: int,
                 feedforward_channels: int,
                 join: str,
                 drop_path: float = 0.,
                 window_size: Optional[int] = None,
                 norm_cfg: dict = dict(type='LN', eps=1e-6)) -> None:
        super().__init__()
        dropout = dict(type='DropPath', drop_prob=drop_path)
        self.join = join
        self.window_size = window_size
        self.ln1 = build_norm_layer(norm_cfg, embed_dims)[1]
        self.attn = MultiheadAttention(
            embed_dims, num_heads, dropout_layer=dropout, batch_first=True)
        self.ln2 = build_norm_layer(norm_cfg, embed_dims)[1]
        self.ffn = FFN(
            embed_dims,
            feedforward_channels,
            act_cfg=dict(type='GELU'),
            dropout_layer=dropout)

    def forward(self, x: Tensor, pos: Optional[Tensor], grid: TokenGrid,
                terms: Sequence[Term]) -> Tensor:
        """Tokens ``(B, N, C)`` to as many.

        Args:
            x (Tensor): Tokens.
            pos (Tensor, optional): Their embedding, ``(B or 1, N, C)``.
            grid (TokenGrid): How they lie.
            terms (Sequence[Term]): What encodings add to the attention: on
                the windows' grid, if there are windows.
        """
        if pos is not None and self.join == 'shared':
            x = x + pos.to(x.dtype)
        h = self.ln1(x)
        if pos is not None and self.join == 'attention':
            h = h + pos.to(h.dtype)
        pos = (
            pos.to(h.dtype)
            if pos is not None and self.join == 'query_key' else None)
        x = self._attend(x, h, pos, grid, terms)
        return self.ffn(self.ln2(x), identity=x)

    def _attend(self, x: Tensor, h: Tensor, pos: Optional[Tensor],
                grid: TokenGrid, terms: Sequence[Term]) -> Tensor:
        if self.window_size is None:
            return self.attn(
                h,
                identity=x,
                query_pos=pos,
                key_pos=pos,
                key_padding_mask=grid.mask,
                terms=terms)
        windows = Windows(grid, self.window_size)
        if pos is not None:
            pos = windows.split(pos.expand(len(x), -1, -1))
        out = self.attn(
            windows.split(h),
            identity=windows.split(x),
            query_pos=pos,
            key_pos=pos,
            key_padding_mask=windows.padding(grid.mask, len(x)),
            terms=terms)
        return windows.merge(out)

    def terms_grid(self, grid: TokenGrid) -> TokenGrid:
        """The grid that terms are for."""
        if self.window_size is None:
            return grid
        return Windows(grid, self.window_size).grid
