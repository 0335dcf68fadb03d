"""Deformable attention with terms per bucket of sampling offsets."""
from typing import Optional, Sequence

import torch
from mmcv.ops.multi_scale_deform_attn import \
    MultiScaleDeformableAttention as _Attention
from mmcv.ops.multi_scale_deform_attn import (
    MultiScaleDeformableAttnFunction, multi_scale_deformable_attn_pytorch)
from torch import Tensor, nn

from mmpe.position.terms import BucketTerm, Term


class MultiScaleDeformableAttention(_Attention):
    """MMCV's deformable attention, to whose weights position terms are added.

    The offset from a sampling point to its query, in cells of the sampled
    level, is the relative position; the term is added to the attention weight
    before the softmax.

    Note:
        This is ours: iRPE is defined for pairs of queries and keys only, which
        deformable attention doesn't have.
    """

    @classmethod
    def adopt(cls, root: nn.Module) -> None:
        """Convert MMCV's modules under ``root`` in place."""
        for module in root.modules():
            if type(module) is _Attention:
                module.__class__ = cls

    @staticmethod
    def check(terms: Sequence[Term]) -> None:
        """Raise a ValueError for terms that have no meaning here."""
        for term in terms:
            if (not isinstance(term, BucketTerm)
                    or term.target not in ('k', 'bias')
                    or term.buckets.flipped or term.buckets.whole_cells):
                raise ValueError(
                    'of relative encodings, deformable attention takes '
                    "ImageRPE with target='k' only: it has no pairs of "
                    'queries and keys for others')

    def forward(self,
                query: Tensor,
                key: Optional[Tensor] = None,
                value: Optional[Tensor] = None,
                identity: Optional[Tensor] = None,
                query_pos: Optional[Tensor] = None,
                key_padding_mask: Optional[Tensor] = None,
                reference_points: Optional[Tensor] = None,
                spatial_shapes: Optional[Tensor] = None,
                level_start_index: Optional[Tensor] = None,
                terms: Sequence[BucketTerm] = (),
                **kwargs) -> Tensor:
        """MMCV's arguments, batch first, and ``terms``, for which reference
        points are points, ``(B, N, levels, 2)``."""
        if not terms:
            return super().forward(
                query, key, value, identity, query_pos, key_padding_mask,
                reference_points, spatial_shapes, level_start_index, **kwargs)
        identity = query if identity is None else identity
        value = query if value is None else value
        query = query if query_pos is None else query + query_pos

        value = self.value_proj(value)
        if key_padding_mask is not None:
            value = value.masked_fill(key_padding_mask[..., None], 0.)
        value = value.unflatten(2, (self.num_heads, -1))
        points = self.num_levels, self.num_points
        offsets = self.sampling_offsets(query).unflatten(
            2, (self.num_heads, *points, 2))
        logits = self.attention_weights(query).unflatten(
            2, (self.num_heads, -1)).float()
        for term in terms:
            logits = logits + self._term(term, query, offsets.flatten(3, 4))
        weights = logits.softmax(-1).to(value.dtype).unflatten(3, points)
        cells = spatial_shapes.flip(1)[:, None].to(offsets.dtype)  # (w, h)
        locations = reference_points[:, :, None, :, None] + offsets / cells
        if value.is_cuda:
            out = MultiScaleDeformableAttnFunction.apply(
                value, spatial_shapes, level_start_index, locations, weights,
                self.im2col_step)
        else:
            out = multi_scale_deformable_attn_pytorch(value, spatial_shapes,
                                                      locations, weights)
        return identity + self.dropout(self.output_proj(out))

    def _term(self, term: BucketTerm, query: Tensor,
              offsets: Tensor) -> Tensor:
        """``(B, N, H, P)`` for ``(B, N, H, P, 2)`` offsets, x first."""
        # Query minus key, the key being the sampling point.
        ids = term.buckets(-offsets[..., 1].detach(),
                           -offsets[..., 0].detach())
        table = term.table
        if term.target == 'bias':
            table = table.expand(self.num_heads, -1)
            heads = torch.arange(self.num_heads, device=ids.device)
            return table[heads[:, None], ids]
        with torch.autocast(query.device.type, enabled=False):
            q = query.float().unflatten(2, (self.num_heads, -1))
            q = q.transpose(1, 2) * q.shape[-1]**-0.5
            scores = (q @ table).transpose(1, 2)  # (B, N, H, nb)
        return scores.gather(3, ids)
