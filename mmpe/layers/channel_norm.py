"""Layer normalisation of maps."""
from torch import Tensor, nn


class ChannelNorm(nn.LayerNorm):
    """Normalises each cell's channels, ``(B, C, h, w)``, so that what lies in
    one cell, such as padding, doesn't change another."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
