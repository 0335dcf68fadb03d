"""Encoders of MMDetection over feature maps, with position encodings."""
from typing import List, Optional, Sequence

import torch
from mmdet.models.layers import (DeformableDetrTransformerEncoder,
                                 DetrTransformerEncoder)
from mmengine.model import BaseModule
from torch import Tensor, nn

from mmpe.position import PositionEncodingList, TokenGrid
from .encoder_layer import DeformableDetrEncoderLayer, DetrEncoderLayer
from .stream import PositionStream


class EncoderStage(BaseModule):
    """Layers that attend within the maps that they are given.

    Args:
        items (Sequence[dict]): Position encodings.
        embed_dims (int): Width.
        num_layers (int): Layers.
        num_heads (int): Attention heads.
        feedforward_channels (int): Hidden width of the MLPs.
        dropout (float): Of attention, MLPs and their outputs.
        with_cp (bool): Whether layers are recomputed in the backward.
    """
    layer_class = DetrEncoderLayer
    encoder_class = DetrTransformerEncoder
    embeds_more = False

    def __init__(self, items: Sequence[dict], embed_dims: int, num_layers: int,
                 num_heads: int, feedforward_channels: int, dropout: float,
                 with_cp: bool, **attention) -> None:
        super().__init__()
        self.encoder = self.encoder_class(
            num_layers=num_layers,
            layer_cfg=dict(
                self_attn_cfg=dict(
                    embed_dims=embed_dims,
                    num_heads=num_heads,
                    dropout=dropout,
                    batch_first=True,
                    **attention),
                ffn_cfg=dict(
                    embed_dims=embed_dims,
                    feedforward_channels=feedforward_channels,
                    ffn_drop=dropout)))
        self.layer_class.adopt(self.encoder.layers,
                               num_layers if with_cp else 0)
        self.positional_encoding = PositionEncodingList(
            items,
            embed_dims=embed_dims,
            num_heads=num_heads,
            num_layers=num_layers)
        self.layer_class.check(self.positional_encoding, self.embeds_more)

    def init_weights(self) -> None:
        """DETR's rule, and each encoding's own."""
        for p in self.encoder.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)
        super().init_weights()

    def forward(self, maps: List[Tensor],
                masks: List[Optional[Tensor]]) -> List[Tensor]:
        """``(B, C, h, w)`` of each level to as many."""
        mask = None
        if masks[0] is not None:
            mask = torch.cat([m.flatten(1) for m in masks], 1)
        grid = TokenGrid(
            tuple(tuple(m.shape[-2:]) for m in maps), mask,
            device=maps[0].device)
        x = grid.tokens(maps[0].new_empty(len(maps[0]), 0, maps[0].shape[1]),
                        maps)
        pos = self._embedding(self.positional_encoding.embed(grid), grid)
        if pos is not None:
            pos = pos.to(x.dtype).expand(len(x), -1, -1)
        stream = PositionStream(self.positional_encoding, grid, pos)
        x = self._encode(x, stream, grid, masks)
        return [m.contiguous() for m in grid.maps(x)[1]]

    def _embedding(self, pos: Optional[Tensor],
                   grid: TokenGrid) -> Optional[Tensor]:
        return pos

    def _encode(self, x: Tensor, stream: PositionStream, grid: TokenGrid,
                masks: List[Optional[Tensor]]) -> Tensor:
        return self.encoder(
            query=x, query_pos=stream, key_padding_mask=grid.mask)


class DeformableEncoderStage(EncoderStage):
    """Deformable attention over all levels, which a level embedding tells
    apart."""
    layer_class = DeformableDetrEncoderLayer
    encoder_class = DeformableDetrTransformerEncoder
    embeds_more = True

    def __init__(self, *args, embed_dims: int, num_levels: int,
                 **kwargs) -> None:
        super().__init__(
            *args, embed_dims=embed_dims, num_levels=num_levels, **kwargs)
        self.level_embed = nn.Parameter(torch.empty(num_levels, embed_dims))
        nn.init.normal_(self.level_embed)

    def init_weights(self) -> None:
        super().init_weights()
        nn.init.normal_(self.level_embed)
        for layer in self.encoder.layers:
            layer.self_attn.init_weights()

    def _embedding(self, pos: Optional[Tensor],
                   grid: TokenGrid) -> Optional[Tensor]:
        levels = torch.cat([
            embed.expand(h * w, -1)
            for embed, (h, w) in zip(self.level_embed, grid.shapes)
        ])[None]
        return levels if pos is None else pos + levels

    def _encode(self, x: Tensor, stream: PositionStream, grid: TokenGrid,
                masks: List[Optional[Tensor]]) -> Tensor:
        shapes = torch.tensor(grid.shapes, device=x.device)
        starts = torch.cat(
            [shapes.new_zeros(1), shapes.prod(1).cumsum(0)[:-1]])
        ratios = x.new_ones(len(x), len(masks), 2)
        if grid.sizes is not None:
            ratios = torch.tensor(
                [[(max(w, 1) / shape[1], max(h, 1) / shape[0])
                  for (h, w), shape in zip(image, grid.shapes)]
                 for image in zip(*grid.sizes)],
                dtype=x.dtype, device=x.device)
        return self.encoder(
            query=x,
            query_pos=stream,
            key_padding_mask=grid.mask,
            spatial_shapes=shapes,
            level_start_index=starts,
            valid_ratios=ratios)
