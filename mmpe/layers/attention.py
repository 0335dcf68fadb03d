"""Multi-head attention that PyTorch can fuse."""
from typing import Optional, Sequence

import torch
import torch.nn.functional as F
from mmcv.cnn.bricks.transformer import MultiheadAttention as _Attention
from torch import Tensor, nn

from mmpe.position.terms import Term
from .term_attention import attend


class MultiheadAttention(_Attention):
    """MMCV's multi-head attention, batch first, without attention weights.

    Same arguments, state-dict keys and results. MMCV asks for the weights,
    which nobody reads and which keep PyTorch from fusing the attention.

    Note:
        Without ``key_pos`` nothing is added to the keys; MMCV would take
        ``query_pos`` for it when the shapes happen to agree. An image whose
        keys are all padding attends to all of them instead of giving NaN.
    """

    @classmethod
    def adopt(cls, root: nn.Module) -> None:
        """Convert MMCV's attention modules under ``root`` in place.

        Those whose keys or values have a width of their own stay as they are.
        """
        for module in root.modules():
            if (type(module) is _Attention and module.batch_first
                    and module.attn.in_proj_bias is not None
                    and module.attn.in_proj_weight is not None
                    and module.attn.bias_k is None
                    and not module.attn.add_zero_attn):
                module.__class__ = cls

    @staticmethod
    def check(terms: Sequence[Term]) -> None:
        """Dense attention takes all terms."""

    def forward(self,
                query: Tensor,
                key: Optional[Tensor] = None,
                value: Optional[Tensor] = None,
                identity: Optional[Tensor] = None,
                query_pos: Optional[Tensor] = None,
                key_pos: Optional[Tensor] = None,
                attn_mask: Optional[Tensor] = None,
                key_padding_mask: Optional[Tensor] = None,
                terms: Sequence[Term] = (),
                **kwargs) -> Tensor:
        """Attend.

        Args:
            query (Tensor): ``(B, N, C)``.
            key (Tensor, optional): ``(B, M, C)``. Defaults to ``query``.
            value (Tensor, optional): ``(B, M, C)``. Defaults to ``key``.
            identity (Tensor, optional): What the result is added to. Defaults
                to ``query``.
            query_pos (Tensor, optional): Added to the queries, ``(B or 1, N,
                C)``. Defaults to None.
            key_pos (Tensor, optional): Added to the keys, ``(B or 1, M, C)``.
                Defaults to None.
            attn_mask (Tensor, optional): ``(N, M)`` or ``(B * heads, N, M)``;
                bool, True is not attended, or float, added to the logits.
                Defaults to None.
            key_padding_mask (Tensor, optional): bool, ``(B, M)``, True is
                padding. Defaults to None.
            terms (Sequence[Term]): What position encodings add.
                Defaults to ().

        Returns:
            Tensor: ``(B, N, C)``.
        """
        key = query if key is None else key
        value = key if value is None else value
        identity = query if identity is None else identity
        same = key is query and key_pos is query_pos
        query = query if query_pos is None else query + query_pos
        if same:
            key = query
        elif key_pos is not None:
            key = key + key_pos

        q, k, v = self._project(query, key, value)
        mask = self._merge(attn_mask, key_padding_mask, q)
        dropout = self.attn.dropout if self.training else 0.
        out = attend(q, k, v, mask, dropout, terms)
        out = self.attn.out_proj(out.transpose(1, 2).flatten(2))
        return identity + self.dropout_layer(self.proj_drop(out))

    def _project(self, query: Tensor, key: Tensor, value: Tensor):
        """To ``(B, heads, N, C / heads)`` each."""
        weight, bias = self.attn.in_proj_weight, self.attn.in_proj_bias
        c = self.embed_dims
        if key is query is value:  # one product for all
            return F.linear(query, weight, bias).unflatten(
                2, (3, self.num_heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        if key is query:
            q, k = F.linear(query, weight[:2 * c], bias[:2 * c]).chunk(2, -1)
        else:
            q = F.linear(query, weight[:c], bias[:c])
            k = F.linear(key, weight[c:2 * c], bias[c:2 * c])
        v = F.linear(value, weight[2 * c:], bias[2 * c:])
        return [
            x.unflatten(2, (self.num_heads, -1)).transpose(1, 2)
            for x in (q, k, v)
        ]

    def _merge(self, attn_mask: Optional[Tensor],
               key_padding_mask: Optional[Tensor],
               q: Tensor) -> Optional[Tensor]:
        """One mask in PyTorch's fused form: bool, True is attended, or float.
        """
        if attn_mask is not None:
            if attn_mask.dim() == 3:
                attn_mask = attn_mask.unflatten(0, (-1, self.num_heads))
            attn_mask = (~attn_mask if attn_mask.dtype == torch.bool else
                         attn_mask.float())
        if key_padding_mask is None:
            return attn_mask
        padding = key_padding_mask.bool()
        padding = padding & ~padding.all(1, keepdim=True)
        padding = padding[:, None, None]
        if attn_mask is None:
            return ~padding
        if attn_mask.dtype == torch.bool:
            return attn_mask & ~padding
        return attn_mask.masked_fill(padding, -torch.inf)
