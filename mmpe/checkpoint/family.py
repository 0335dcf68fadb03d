"""What mmpe knows of a family of checkpoints."""
from dataclasses import dataclass
from typing import Callable, Iterable, List, Mapping, Sequence, Tuple

from torch import Tensor

from .rules import Rule, name_pattern


@dataclass(frozen=True)
class Origin:
    """Which position encodings a checkpoint was trained with.

    Args:
        items (tuple[dict, ...]): As in a config, with the arguments that are
            known.
        assumed (tuple[str, ...]): What the file doesn't show, in words.
            Defaults to nothing.
        unknown (str): Why the encodings can't be told. Defaults to nothing.
        partial (bool): Whether the items lack arguments that aren't known.
            Defaults to False.
    """
    items: Tuple[dict, ...] = ()
    assumed: Tuple[str, ...] = ()
    unknown: str = ''
    partial: bool = False


@dataclass(frozen=True)
class Family:
    """Checkpoints of one code base that have the same names.

    Args:
        name (str): What users type.
        title (str): What it is called in reports.
        marks (Sequence[str]): Names, as in :class:`Rule`, all of which its
            checkpoints have.
        rules (Sequence[Rule]): What its tensors are called here. For a
            backbone by itself as in a classifier, ``backbone.`` and ``head.``.
        origin (Callable): From the checkpoint's tensors to its
            :class:`Origin`.
        without (Sequence[str]): Names none of which they have.
            Defaults to ().
        is_backbone (bool): Whether it is a backbone, with or without a head.
            Defaults to False.
    """
    name: str
    title: str
    marks: Sequence[str]
    rules: Sequence[Rule]
    origin: Callable[[Mapping[str, Tensor]], Origin]
    without: Sequence[str] = ()
    is_backbone: bool = False

    def has(self, names: Iterable[str]) -> bool:
        """Whether a checkpoint with these names is of this family."""
        names = list(names)
        return not self.lacks(names) and not any(
            _any(mark, names) for mark in self.without)

    def lacks(self, names: Iterable[str]) -> List[str]:
        """Which marks none of these names have."""
        names = list(names)
        return [mark for mark in self.marks if not _any(mark, names)]


def _any(mark: str, names: List[str]) -> bool:
    pattern = name_pattern(mark)
    return any(pattern.fullmatch(name) for name in names)
