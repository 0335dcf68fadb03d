"""What an import tells about itself."""
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional, Sequence

from .fit import DROPPED, INITIALISED, STATUSES, Entry

_SHOWN = 12  # lines of one kind on a terminal; --json has all


@dataclass
class Report:
    """An account of an import.

    Args:
        config (str): Path of the config.
        source (str): Path of the checkpoint.
        url (str, optional): Where it was downloaded from.
        family (str): What it was recognised as.
        container (str): The key that it has its tensors under.
        entries (list[Entry]): What became of each tensor.
        reasons (list[str]): Why the model doesn't start as the function of
            its source; nothing if it does.
        assumed (list[str]): What that takes for granted.
        check (dict, optional): What ``--check`` found.
    """
    config: str
    source: str
    url: Optional[str]
    family: str
    container: str
    entries: List[Entry]
    reasons: List[str]
    assumed: List[str]
    check: Optional[Dict[str, Any]] = field(default=None)

    @property
    def is_same_function(self) -> bool:
        return not self.reasons

    @property
    def missed(self) -> List[Entry]:
        """What ``--strict`` refuses."""
        return [e for e in self.entries if e.is_missed]

    @property
    def refusal(self) -> str:
        """Why ``--strict`` refuses the import, one line."""
        return f'--strict refuses {self.source}: {_some(self.missed)}'

    @property
    def verdict(self) -> str:
        """One line."""
        if self.is_same_function:
            given = (f' (taken for granted: {"; ".join(self.assumed)})'
                     if self.assumed else '')
            return f'starts as the very function of the source{given}'
        if self.missed:
            return (f'incomplete: {_some(self.missed)}. So it starts as '
                    'another function than the source')
        return ('all but position encodings is the source\'s; it starts as '
                f'another function: {"; ".join(self.reasons)}')

    def totals(self) -> Dict[str, Dict[str, int]]:
        """Tensors and parameters of each status."""
        return {
            status: dict(
                tensors=sum(e.status == status for e in self.entries),
                parameters=sum(e.parameters for e in self.entries
                               if e.status == status)) for status in STATUSES
        }

    def as_dict(self) -> Dict[str, Any]:
        """For JSON."""
        return dict(
            config=self.config,
            source=self.source,
            url=self.url,
            family=self.family,
            container=self.container,
            totals=self.totals(),
            same_function=self.is_same_function,
            reasons=self.reasons,
            assumed=self.assumed,
            verdict=self.verdict,
            check=self.check,
            entries=[asdict(e) for e in self.entries])

    def as_text(self) -> str:
        """For a terminal."""
        lines = [f'{self.source}: {self.family}']
        for status, total in self.totals().items():
            lines.append(f'{status:<12}{total["tensors"]:>6} tensors'
                         f'{total["parameters"]:>14,} parameters')
            if status != 'loaded':
                lines += _lines([e for e in self.entries
                                 if e.status == status])
        lines.append(f'Verdict: {self.verdict}')
        if self.check:
            lines.append(f'Check: {self.check["says"]}')
        return '\n'.join(lines)


def _some(missed: Sequence[Entry]) -> str:
    named = '; '.join(f'{e.name} ({_why(e)})' for e in missed[:3])
    more = f' and {len(missed) - 3} more' if len(missed) > 3 else ''
    return (f'{len(missed)} tensors outside the position encodings don\'t '
            f'match: {named}{more}')


def _why(entry: Entry) -> str:
    if entry.status == DROPPED:
        return f'of the checkpoint, {entry.note}'
    return f'of the model, {entry.note}' if entry.note else 'of the model'


def _lines(entries: Sequence[Entry]) -> List[str]:
    """Names and notes, one line for those that differ in a number only."""
    groups: Dict[Any, List[str]] = {}
    for e in entries:
        parts = tuple(p for p in e.name.split('.') if not p.isdigit())
        note = e.note if e.status == INITIALISED else ''.join(
            c for c in e.note if not c.isdigit())
        groups.setdefault((parts, note), []).append(e)
    lines = []
    for group in list(groups.values())[:_SHOWN]:
        first = group[0]
        more = f' and {len(group) - 1} like it' if len(group) > 1 else ''
        lines.append(f'    {first.name}{more}: {first.note}')
    if len(groups) > _SHOWN:
        lines.append(f'    and {len(groups) - _SHOWN} other kinds: --json '
                     'has all')
    return lines
