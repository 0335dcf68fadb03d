"""Normalisation whose statistics are those of the valid cells."""
from typing import Optional

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.nn.functional import all_reduce
from torch.nn.modules.batchnorm import _NormBase


class ValidBatchNorm(_NormBase):
    """Batch norm of tokens, over the valid ones only.

    The running statistics are of the valid tokens too, with the unbiased
    variance, as in ``nn.BatchNorm2d``, whose state-dict keys it has.

    Args:
        num_features (int): Channels.
        sync (bool): Whether statistics are over all processes' tokens.
            Defaults to False.
        kwargs: ``eps``, ``momentum``, ``affine`` of ``nn.BatchNorm2d``.
    """

    def __init__(self,
                 num_features: int,
                 sync: bool = False,
                 **kwargs) -> None:
        super().__init__(num_features, **kwargs)
        self.sync = sync

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        """Normalise.

        Args:
            x (Tensor): ``(B, N, C)``.
            mask (Tensor, optional): ``(B, N)``, True is padding.

        Returns:
            Tensor: ``(B, N, C)`` in the type of ``x``; padded tokens are
            normalised like the others but counted nowhere.
        """
        exact = x.to(torch.promote_types(x.dtype, torch.float32))
        if self.training:
            mean, var = self._batch_statistics(exact, mask)
        else:
            mean, var = self.running_mean, self.running_var
        scale = (var + self.eps).rsqrt()
        if self.affine:
            scale = scale * self.weight
        shift = -mean * scale
        if self.affine:
            shift = shift + self.bias
        return (exact * scale + shift).to(x.dtype)

    def _batch_statistics(self, x: Tensor, mask: Optional[Tensor]):
        weight = x.new_ones(x.shape[:2])
        if mask is not None:
            weight = weight.masked_fill(mask, 0)
        weight = weight[..., None]
        count = self._total(weight.sum().view(1))
        # A batch of nothing but padding has no statistics; stay finite.
        divisor = count.clamp(min=1)
        x = x if mask is None else x.masked_fill(mask[..., None], 0)
        mean = self._total(x.sum((0, 1))) / divisor
        var = self._total(((x - mean).square() * weight).sum((0, 1))) / divisor
        if not _recomputing():
            self._update_running(mean.detach(), var.detach(), count.detach())
        return mean, var

    def _total(self, x: Tensor) -> Tensor:
        """Sum over processes, with gradient."""
        if self.sync and dist.is_initialized() and dist.get_world_size() > 1:
            return all_reduce(x)
        return x

    @torch.no_grad()
    def _update_running(self, mean, var, count) -> None:
        self.num_batches_tracked += 1
        momentum = (
            self.momentum if self.momentum is not None else 1.0 /
            float(self.num_batches_tracked))
        own = self.running_mean.dtype
        momentum = (momentum * (count > 0)).to(own)
        unbiased = var * count / (count - 1).clamp(min=1)
        self.running_mean.lerp_(mean.to(own), momentum)
        self.running_var.lerp_(unbiased.to(own), momentum)


class TokenLayerNorm(nn.LayerNorm):
    """Layer norm of each token by itself, so that padding can't matter."""

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        return super().forward(x)


def build_valid_norm(cfg: dict, channels: int) -> nn.Module:
    """Build from an MM-style ``norm_cfg``: BN, SyncBN or LN.

    Raises:
        ValueError: If ``type`` is another one.
    """
    cfg = dict(cfg)
    kind = cfg.pop('type', None)
    requires_grad = cfg.pop('requires_grad', True)
    if kind in ('BN', 'BN2d', 'SyncBN'):
        norm = ValidBatchNorm(channels, sync=kind == 'SyncBN', **cfg)
    elif kind == 'LN':
        norm = TokenLayerNorm(channels, **cfg)
    else:
        raise ValueError(
            f"norm_cfg: type must be 'BN', 'SyncBN' or 'LN', got {kind!r}")
    return norm.requires_grad_(requires_grad)


def _recomputing() -> bool:
    """Whether a checkpointed forward is being run again in the backward."""
    return torch._C._current_graph_task_id() != -1
