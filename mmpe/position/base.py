"""What a position encoding is."""
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from mmengine.logging import print_log
from mmengine.model import BaseModule
from torch import Tensor

from .grid import TokenGrid
from .terms import Term


class Resized(NamedTuple):
    """A table of a checkpoint that was made to fit."""
    name: str
    before: str
    after: str
    how: str

    def __str__(self) -> str:
        return (f'{self.name}: resized ({self.how}) from {self.before} to '
                f'{self.after}')


class PositionEncoding(BaseModule):
    """Base class of all position encodings.

    A host asks an encoding for an embedding, for changes between the layers
    and for terms of their attention; each may be left as it is here. Encodings
    know nothing of hosts, and hosts know nothing of particular encodings.

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
    own_names: Dict[str, str] = {}
    """Arguments that users know by another name than the constructor."""
    layers: Optional[Sequence[int]] = None
    """Which layers use what :meth:`embed` gives; all if None."""
    decoder: bool = False
    """Whether a decoder's keys get the same, with weights of their own."""
    join: Optional[str] = None
    """How a host of pre-norm layers has to use the embedding; any way if None.
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
        # Under its old name, which PyTorch before 2.5 has too.
        self._register_load_state_dict_pre_hook(
            _adapt_before_loading, with_module=True)

    def adapt(self, weights: Dict[str, Tensor], prefix: str) -> List[Resized]:
        """Make tables of a checkpoint, in place, those of this encoding: of
        its grid or its buckets. Called before they are loaded.

        Args:
            weights (dict[str, Tensor]): All of the checkpoint.
            prefix (str): What the names of this encoding begin with.

        Returns:
            list[Resized]: The tables that were changed.

        Raises:
            ValueError: If that can't be done.
        """
        return []

    def embed(self, grid: TokenGrid) -> Optional[Tensor]:
        """An absolute embedding in float32, ``(B or 1, N, C)``, or None."""

    def layer_embedding(self, i: int, pos: Optional[Tensor],
                        grid: TokenGrid) -> Optional[Tensor]:
        """What layer ``i`` uses of the embedding ``pos`` that flows beside
        the tokens, ``(B or 1, N, C)`` each, or None."""
        return pos

    def between(self, i: int, x: Tensor, pos: Optional[Tensor],
                grid: TokenGrid) -> Tuple[Tensor, Optional[Tensor]]:
        """Change the tokens or the embedding after layer ``i``.

        Args:
            i (int): The layer just left; -1 before layer 0.
            x (Tensor): Tokens, ``(B, N, C)``.
            pos (Tensor, optional): The embedding that flows beside them,
                ``(B or 1, N, C)``.
            grid (TokenGrid): The grid of ``x``.

        Returns:
            tuple[Tensor, Tensor]: Tokens and embedding from here on.
        """
        return x, pos

    def terms(self, i: int, grid: TokenGrid) -> List[Term]:
        """What the attention of layer ``i`` does with offsets."""
        return []

    def regrid(self, i: int, grid: TokenGrid) -> TokenGrid:
        """The grid of the tokens that :meth:`between` returns."""
        return grid

    def check_layers(self, layers: Sequence[int]) -> Tuple[int, ...]:
        """Layers in order.

        Raises:
            ValueError: If the host doesn't have them, or there are none.
        """
        known = range(self.num_layers)
        if not isinstance(layers, (list, tuple, range)) or not layers or any(
                not isinstance(i, int) or i not in known for i in layers):
            raise ValueError('layers must be a list of layers from 0 to '
                             f'{self.num_layers - 1}, got {layers!r}')
        return tuple(sorted(set(layers)))

    @property
    def is_absolute(self) -> bool:
        """Whether :meth:`embed` gives an embedding."""
        return type(self).embed is not PositionEncoding.embed

    @property
    def needs_embedding(self) -> bool:
        """Whether it changes an embedding that others give."""
        return False

    @property
    def is_relative(self) -> bool:
        """Whether :meth:`terms` gives any."""
        return type(self).terms is not PositionEncoding.terms

    @property
    def changes_nothing(self) -> bool:
        """Whether a host computes, with the numbers that the parameters have
        now, what it would compute without this encoding."""
        return False

    @property
    def keeps_grid(self) -> bool:
        """Whether the tokens stay as many as they are."""
        return True


def _adapt_before_loading(module: PositionEncoding,
                          state_dict: Dict[str, Tensor], prefix: str,
                          *args) -> None:
    for resized in module.adapt(state_dict, prefix):
        print_log(str(resized), logger='current')
