"""The list that users write, as one module."""
import inspect
from typing import List, Optional, Sequence, Tuple, Union

from mmengine.registry import Registry
from torch import Tensor

from mmpe.nearest import did_you_mean
from mmpe.registry import MODELS
from .base import PositionEncoding
from .grid import TokenGrid
from .terms import Term

_HOST = ('embed_dims', 'num_heads', 'num_layers', 'num_prefix')


class PositionEncodingList(PositionEncoding):
    """Position encodings composed: what they embed is summed, what they do
    between layers happens in the order of the list.

    Args:
        items (Sequence[dict]): Configs of encodings, without the arguments
            that come from the host. Empty is no position encoding.
        defaults (dict): Arguments that items which take them get unless they
            say otherwise, such as the grid that a host is made for.
        embed_dims (int): Width of the tokens.
        num_heads (int): Attention heads.
        num_layers (int): Layers of the host.

    Raises:
        TypeError: If an item isn't a dict with a ``type``, or has an argument
            that its type doesn't take.
        KeyError: If there is no encoding of that type.
        ValueError: If an argument's value is wrong.
    """

    def __init__(self,
                 items: Sequence[dict],
                 defaults: Optional[dict] = None,
                 **host) -> None:
        super().__init__(**host)
        for cls, item in zip(check_items(items), items):
            accepted = _accepted(cls)
            arguments = {
                k: v for k, v in (defaults or {}).items() if k in accepted
            }
            for key, value in item.items():
                if key != 'type':
                    arguments[cls.own_names.get(key, key)] = value
            try:
                encoding = cls(**arguments, **host)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{item['type']}: {error}") from error
            self.add_module(self._free_name(cls), encoding)

    def _free_name(self, cls: type) -> str:
        name = cls.name or cls.__name__.lower()
        taken, number = name, 1
        while taken in self._modules:
            number += 1
            taken = f'{name}{number}'
        return taken

    @property
    def encodings(self) -> List[PositionEncoding]:
        return list(self.children())

    @property
    def is_absolute(self) -> bool:
        """Whether any of the encodings embeds absolute positions for all
        layers."""
        return any(e.is_absolute and not e.layers for e in self.encodings)

    @property
    def needs_embedding(self) -> bool:
        return any(e.needs_embedding for e in self.encodings)

    @property
    def is_relative(self) -> bool:
        return any(e.is_relative for e in self.encodings)

    @property
    def keeps_grid(self) -> bool:
        return all(e.keeps_grid for e in self.encodings)

    def check_embedding(self, embeds_more: bool = False) -> None:
        """Whether what changes an embedding has one to change.

        Args:
            embeds_more (bool): Whether the host adds one besides the list's.
                Defaults to False.

        Raises:
            ValueError: If not.
        """
        for e in self.encodings:
            if not e.needs_embedding:
                continue
            if any(other.layers for other in self.encodings):
                raise ValueError(
                    f'{type(e).__name__} changes an embedding that all layers '
                    'have: leave layers out of the other items')
            if not (embeds_more or self.is_absolute):
                raise ValueError(
                    f'{type(e).__name__} changes the embedding of other items '
                    'of positional_encoding, but none embeds: add one, such as '
                    "dict(type='mmpe.SinePositionalEncoding')")

    def embed(self, grid: TokenGrid) -> Optional[Tensor]:
        total = None
        for encoding in self.encodings:
            pos = None if encoding.layers else encoding.embed(grid)
            if pos is not None:
                if pos.shape[1] != grid.num_tokens:
                    raise ValueError(
                        f'{type(encoding).__name__} embeds {pos.shape[1]} '
                        f'tokens, the grid {grid.shapes} with '
                        f'{grid.num_prefix} prefix tokens has '
                        f'{grid.num_tokens}')
                total = pos if total is None else total + pos
        return total

    def layer_embedding(self, i: int, pos: Optional[Tensor],
                        grid: TokenGrid) -> Optional[Tensor]:
        for encoding in self.encodings:
            pos = encoding.layer_embedding(i, pos, grid)
        return pos

    def between(self, i: int, x: Tensor, pos: Optional[Tensor],
                grid: TokenGrid) -> Tuple[Tensor, Optional[Tensor]]:
        for encoding in self.encodings:
            x, pos = encoding.between(i, x, pos, grid)
            grid = encoding.regrid(i, grid)
        return x, pos

    def terms(self, i: int, grid: TokenGrid) -> List[Term]:
        return [t for e in self.encodings for t in e.terms(i, grid)]

    def regrid(self, i: int, grid: TokenGrid) -> TokenGrid:
        for encoding in self.encodings:
            grid = encoding.regrid(i, grid)
        return grid


def as_items(cfg: Union[dict, Sequence[dict]]) -> List[dict]:
    """What a ``positional_encoding`` means, as a list of items.

    A dict without ``type``, as in MMDetection's configs, is the sine encoding.

    Raises:
        TypeError: If it is neither a dict nor a list.
    """
    if isinstance(cfg, dict):
        return [cfg if 'type' in cfg else
                dict(cfg, type='mmpe.SinePositionalEncoding')]
    if isinstance(cfg, (list, tuple)):
        return list(cfg)
    raise TypeError(
        'positional_encoding must be a list of dicts such as '
        f"[dict(type='mmpe.PEG')], or [] for none; got {cfg!r}")


def check_items(items: Sequence[dict]) -> List[type]:
    """The classes of ``items``, whose names and arguments are checked.

    Raises:
        TypeError: If an item isn't a dict with a ``type``, or has an argument
            that its type doesn't take.
        KeyError: If there is no encoding of that type.
    """
    classes = [_find(item) for item in items]
    for cls, item in zip(classes, items):
        _check_arguments(cls, item)
    return classes


def _find(item: dict) -> type:
    if not isinstance(item, dict) or 'type' not in item:
        raise TypeError('an item of positional_encoding must be a dict with a '
                        f'type, got {item!r}')
    kind = item['type']
    cls = kind
    if not isinstance(kind, type):
        found = (registry.get(kind) for registry in _registries())
        cls = next((c for c in found if c is not None), None)
    if cls is None:
        raise KeyError(f'no position encoding {kind!r}.'
                       f'{did_you_mean(kind, _known())} '
                       f'Known: {", ".join(_known())}')
    if not (isinstance(cls, type) and issubclass(cls, PositionEncoding)):
        raise TypeError(
            f'{kind} is not a position encoding. Known: {_known()}')
    return cls


def _registries() -> List[Registry]:
    """Ours, and that of the config's scope, where a user's own modules are
    found without a prefix."""
    with MODELS.switch_scope_and_registry(None) as current:
        return [MODELS, current] if current is not MODELS else [MODELS]


def _known() -> List[str]:
    """Encodings by the name that users write, own ones too."""
    return sorted(
        f'{registry.scope}.{name}' for registry in _registries()
        for name, cls in registry.module_dict.items()
        if isinstance(cls, type) and issubclass(cls, PositionEncoding))


def _check_arguments(cls: type, item: dict) -> None:
    """Name the wrong argument, which a TypeError from deep inside doesn't."""
    accepted = _accepted(cls)
    given = [key for key in item if key != 'type']
    for key in given:
        if key in _HOST and key not in cls.own_names:
            raise TypeError(
                f"{item['type']}: {key} comes from the model, leave it out")
    wrong = [key for key in given if key not in accepted]
    if not wrong:
        return
    message = (f"{item['type']} has no argument {', '.join(map(repr, wrong))}"
               f'.{did_you_mean(wrong[0], accepted)} It takes '
               f"{', '.join(sorted(accepted))}")
    if {'num_feats', 'normalize'} & set(wrong):
        message += ('. If the base config brought these, write a list, '
                    f"positional_encoding=[dict(type='{item['type']}', ...)]:"
                    ' a list replaces the inherited dict, a dict is merged '
                    'into it')
    raise TypeError(message)


def _accepted(cls: type) -> set:
    names = set()
    for base in cls.__mro__:
        if base is PositionEncoding:
            break
        if '__init__' in vars(base):
            parameters = inspect.signature(base.__init__).parameters.values()
            names |= {p.name for p in parameters
                      if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}
    hidden = {'self', *_HOST, *cls.own_names.values()}
    return (names | {'init_cfg'}) - hidden | set(cls.own_names)
