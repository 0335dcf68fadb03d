"""Embeddings learned per row and per column."""
import torch
from torch import Tensor, nn

from mmpe.registry import MODELS
from .absolute import AbsoluteEncoding
from .grid import TokenGrid


@MODELS.register_module()
class LearnedPositionalEncoding(AbsoluteEncoding):
    """A learned vector per column and per row, side by side.

    Column half first, unlike the sine encoding, as in the official DETR and
    in MMDetection. Every level uses the same tables.

    Paper: `End-to-End Object Detection with Transformers
    <https://arxiv.org/abs/2005.12872>`_, table 3 ("learned at attn.").

    Args:
        num_feats (int, optional): Channels per coordinate. Defaults to half
            the width.
        row_num_embed (int): Rows that the table has. Defaults to 50.
        col_num_embed (int): Columns that the table has. Defaults to 50.

        layers (Sequence[int], optional): See :class:`AbsoluteEncoding`.

    Raises:
        ValueError: If ``num_feats`` isn't half the host's width, or a grid has
            more rows or columns than the tables.
    """
    name = 'learned'

    def __init__(self,
                 num_feats: int = None,
                 row_num_embed: int = 50,
                 col_num_embed: int = 50,
                 **host) -> None:
        super().__init__(**host)
        num_feats = num_feats or self.embed_dims // 2
        if num_feats * 2 != self.embed_dims:
            raise ValueError(f'num_feats={num_feats} must be half the width '
                             f'of the host, {self.embed_dims}')
        if row_num_embed < 1 or col_num_embed < 1:
            raise ValueError('row_num_embed and col_num_embed must be '
                             f'positive, got {row_num_embed!r} and '
                             f'{col_num_embed!r}')
        self.row_embed = nn.Embedding(row_num_embed, num_feats)
        self.col_embed = nn.Embedding(col_num_embed, num_feats)

    def init_weights(self) -> None:
        """Uniform in [0, 1), as both sources have it."""
        nn.init.uniform_(self.row_embed.weight)
        nn.init.uniform_(self.col_embed.weight)
        super().init_weights()

    def embed(self, grid: TokenGrid) -> Tensor:
        """Embeddings ``(1, N, C)``; zeros for prefix tokens."""
        rows, cols = self.row_embed.weight, self.col_embed.weight
        levels = [rows.new_zeros(grid.num_prefix, self.embed_dims)]
        for h, w in grid.shapes:
            if h > len(rows) or w > len(cols):
                raise ValueError(
                    'LearnedPositionalEncoding has tables for '
                    f'{len(rows)}x{len(cols)} cells, but the grid has {h}x{w}:'
                    f' set row_num_embed and col_num_embed to the largest '
                    'grid that your images give')
            pos = torch.cat((cols[None, :w].expand(h, -1, -1),
                             rows[:h, None].expand(-1, w, -1)), dim=2)
            levels.append(pos.flatten(0, 1))
        return torch.cat(levels)[None]
