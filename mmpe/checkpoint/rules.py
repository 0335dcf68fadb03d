"""Rules that give the tensors of a checkpoint the names that mmpe uses."""
import re
from dataclasses import dataclass
from typing import (Callable, Container, Dict, Iterable, List, Mapping,
                    NamedTuple, Optional, Sequence, Tuple, Union)

import torch
from torch import Tensor


@dataclass(frozen=True)
class Drop:
    """Instead of a name: a tensor that is left out on purpose.

    Args:
        reason (str): Why nothing is lost.
        duplicate_of (str, optional): The name of the tensor that has to be
            the same. Defaults to None.
    """
    reason: str
    duplicate_of: Optional[str] = None


class Rule:
    """One line of a table of rules.

    Args:
        source (str): A name with ``{i}``, ``{j}``, which stand for numbers,
            or longer words in braces, which stand for anything.
        *targets (str or Drop): What it is called here, with the same words.
            Of several, the first that the model has. ``name#0`` and
            ``name#1`` are halves of ``name``, put together along the first
            axis.
        convert (Callable, optional): What is done to the tensor. It may raise
            a :class:`ValueError`. Defaults to nothing.
        hint (str): What to do where the model has none of the targets.
            Defaults to nothing.
    """

    def __init__(self,
                 source: str,
                 *targets: Union[str, Drop],
                 convert: Optional[Callable[[Tensor], Tensor]] = None,
                 hint: str = '') -> None:
        self.pattern = name_pattern(source)
        self.targets = targets
        self.convert = convert
        self.hint = hint

    def match(self, name: str) -> Optional[List[Union[str, Drop]]]:
        """The targets of ``name``, None if it is another's."""
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        words = found.groupdict()
        return [
            Drop(t.reason, t.duplicate_of and t.duplicate_of.format(**words))
            if isinstance(t, Drop) else t.format(**words)
            for t in self.targets
        ]


def name_pattern(name: str) -> 're.Pattern':
    """A pattern for names with words in braces; see :class:`Rule`."""

    def group(match: 're.Match') -> str:
        word = match[1]
        return f'(?P<{word}>{"[0-9]+" if len(word) == 1 else ".+"})'

    return re.compile(re.sub(r'\\\{(\w+)\\\}', group, re.escape(name)))


class Renamed(NamedTuple):
    """A tensor under the name that the model has for it."""
    tensor: Tensor
    sources: Tuple[str, ...]
    hint: str = ''


class Left(NamedTuple):
    """A tensor that has no place in the model."""
    source: str
    reason: str
    harmless: bool


def rename(weights: Mapping[str, Tensor], rules: Sequence[Rule],
           known: Container[str], host: str = 'backbone.'
           ) -> Tuple[Dict[str, Renamed], List[Left]]:
    """Give tensors the names of a model.

    Args:
        weights (Mapping[str, Tensor]): The checkpoint's.
        rules (Sequence[Rule]): Of the checkpoint's family. The first that
            fits a name counts.
        known (Container[str]): Names that the model has.
        host (str): What the names of the module begin with that the rules
            call ``backbone.``. Defaults to the same.

    Returns:
        tuple[dict[str, Renamed], list[Left]]: By name in the model, and what
        is left. Names may be ones that the model doesn't have.

    Raises:
        ValueError: If a tensor can't be what its name says.
    """
    renamed: Dict[str, Renamed] = {}
    parts: Dict[str, Dict[int, Tuple[str, Tensor]]] = {}
    left = []
    for source, tensor in weights.items():
        rule, targets = _find(source, rules)
        if rule is None:
            left.append(Left(source, 'no rule knows this name', False))
            continue
        targets = [
            host + t[len('backbone.'):]
            if isinstance(t, str) and t.startswith('backbone.') else t
            for t in targets
        ]
        target = _first_known(targets, known)
        if rule.convert is not None:
            try:
                tensor = rule.convert(tensor)
            except ValueError as error:
                raise ValueError(f'{source}: {error}') from error
        if isinstance(target, Drop):
            left.append(_drop(source, tensor, target, weights))
            continue
        name, _, part = target.partition('#')
        if part:
            parts.setdefault(name, {})[int(part)] = source, tensor
        elif name in renamed:
            left.append(
                Left(source, f'{renamed[name].sources[0]} is {name}, too',
                     False))
        else:
            renamed[name] = Renamed(tensor, (source, ), rule.hint)
    for name, halves in parts.items():
        sources, tensors = zip(*(halves[i] for i in sorted(halves)))
        renamed[name] = Renamed(torch.cat(tensors), sources)
    return renamed, left


def _find(name: str, rules: Iterable[Rule]):
    for rule in rules:
        targets = rule.match(name)
        if targets is not None:
            return rule, targets
    return None, None


def _first_known(targets: Sequence[Union[str, Drop]],
                 known: Container[str]) -> Union[str, Drop]:
    for target in targets:
        if isinstance(target, Drop) or target.partition('#')[0] in known:
            return target
    return targets[0]


def _drop(source: str, tensor: Tensor, drop: Drop,
          weights: Mapping[str, Tensor]) -> Left:
    if drop.duplicate_of is None:
        return Left(source, drop.reason, True)
    other = weights.get(drop.duplicate_of)
    if other is None or not torch.equal(other, tensor):
        return Left(source, f'it is not the same as {drop.duplicate_of}',
                    False)
    return Left(source, drop.reason, True)
