"""An independent layer normalisation for the position embedding."""
from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mmpe.registry import MODELS
from .base import PositionEncoding
from .grid import TokenGrid


@MODELS.register_module()
class LaPE(PositionEncoding):
    """Each layer normalises the position embedding with weights of its own.

    With omega the embedding of the rest of the list, layer l uses
    ``LN_l(omega)`` (independent) or ``LN_l`` of what layer l-1 used
    (progressive). In a pre-norm layer queries, keys and values see it, beside
    the normalised tokens, and the residual doesn't: x += MSA(LN(x) + pe_l).

    Paper: `Position Embedding Needs an Independent Layer Normalization
    <https://arxiv.org/abs/2212.05262>`_: eq. 9, table 5 for the parts of the
    norm, table 6 for ``num_layers``. The progressive form is its later
    version's, "LaPE: Layer-adaptive Position Embedding" (ICCV 2023).

    Note:
        In DETR-like encoders it is ours: pe_l is what layer l adds to queries
        and keys; in deformable ones omega is position plus level embedding.

    Args:
        form (str): ``'independent'`` or ``'progressive'``.
            Defaults to ``'independent'``.
        num_layers (int, optional): The paper's eta: later layers get no
            position. Defaults to all.
        normalize (bool): Whether to subtract each token's mean and divide by
            its standard deviation. Defaults to True.
        scale (str, optional): gamma: one for each ``'channel'``, one
            ``'scalar'``, or None. Defaults to ``'channel'``.
        shift (bool): Whether there is a beta for each channel.
            Defaults to True.
        decoder (bool): Whether a decoder's keys get it, too, with weights of
            their own. Defaults to False.
        norm_eps (float): Of the norm. Defaults to the host's norms'.

    Raises:
        ValueError: If an argument has a value other than those above.
    """
    name = 'lape'
    own_names = dict(num_layers='eta')
    join = 'attention'

    def __init__(self,
                 form: str = 'independent',
                 eta: Optional[int] = None,
                 normalize: bool = True,
                 scale: Optional[str] = 'channel',
                 shift: bool = True,
                 decoder: bool = False,
                 norm_eps: float = 1e-5,
                 **host) -> None:
        super().__init__(**host)
        if form not in ('independent', 'progressive'):
            raise ValueError("form must be 'independent' or 'progressive', "
                             f'got {form!r}')
        if scale not in ('channel', 'scalar', None):
            raise ValueError("scale must be 'channel', 'scalar' or None, got "
                             f'{scale!r}')
        eta = self.num_layers if eta is None else eta
        if not isinstance(eta, int) or not 1 <= eta <= self.num_layers:
            raise ValueError(f'num_layers must be 1 to {self.num_layers}, '
                             f'got {eta!r}')
        self.progressive = form == 'progressive'
        self.decoder = decoder
        self.norms = nn.ModuleList(
            EmbeddingNorm(self.embed_dims, normalize, scale, shift, norm_eps)
            for _ in range(eta))

    @property
    def needs_embedding(self) -> bool:
        return True

    def init_weights(self) -> None:
        for norm in self.norms:
            norm.reset_parameters()
        super().init_weights()

    def layer_embedding(self, i: int, pos: Optional[Tensor],
                        grid: TokenGrid) -> Optional[Tensor]:
        return pos if self.progressive else self._norm(i, pos)

    def between(self, i: int, x: Tensor, pos: Optional[Tensor],
                grid: TokenGrid) -> Tuple[Tensor, Optional[Tensor]]:
        return x, self._norm(i + 1, pos) if self.progressive else pos

    def _norm(self, i: int, pos: Optional[Tensor]) -> Optional[Tensor]:
        if pos is None or i >= len(self.norms):
            return None
        return self.norms[i](pos)


class EmbeddingNorm(nn.Module):
    """A layer normalisation, or parts of it; see :class:`LaPE`."""

    def __init__(self, channels: int, normalize: bool, scale: Optional[str],
                 shift: bool, eps: float) -> None:
        super().__init__()
        self.channels, self.normalize, self.eps = channels, normalize, eps
        count = dict(channel=channels, scalar=1).get(scale)
        self.weight = nn.Parameter(torch.empty(count)) if count else None
        self.bias = nn.Parameter(torch.empty(channels)) if shift else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        """``(..., C)``, in float32."""
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(torch.promote_types(x.dtype, torch.float32))
            weights = [
                None if p is None else p.to(x.dtype).expand(self.channels)
                for p in (self.weight, self.bias)
            ]
            if self.normalize:
                return F.layer_norm(x, (self.channels, ), *weights, self.eps)
            weight, bias = weights
            x = x if weight is None else x * weight
            return x if bias is None else x + bias
