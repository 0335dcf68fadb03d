"""The tables of a report as text, the same on all its pages."""
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence
from urllib.parse import quote

from .average_precision import METRICS
from .wording import NONE, Escaped, interval, large, number

Report = Mapping[str, Any]
_URL = "%/:?#[]@!$&'()*+,;="


@dataclass(frozen=True)
class Cell:
    """Of a table.

    Args:
        text (str): What it says.
        under (str): Smaller, such as an interval. Defaults to nothing.
        marked (bool): Whether it stands out. Defaults to False.
    """
    text: str
    under: str = ''
    marked: bool = False

    @property
    def line(self) -> str:
        return f'{self.text} ({self.under})' if self.under else self.text


@dataclass(frozen=True)
class Row:
    """Of a table.

    Args:
        name (str): What stands first.
        cells (list[Cell]): The rest.
        method (str, optional): Whose colour it has.
        published (bool): Whether others have published it. Defaults to
            False.
        source (str): Where. Defaults to nothing.
        url (str): Its address. Defaults to none.
    """
    name: str
    cells: List[Cell]
    method: Optional[str] = None
    published: bool = False
    source: str = ''
    url: str = ''

    @property
    def link(self) -> str:
        """As Markdown writes addresses."""
        return Escaped(f'<{self.url}>' if self.url else '')


@dataclass(frozen=True)
class Table:
    """Of text.

    Args:
        columns (list[str]): Headings.
        rows (list[Row]): A cell for each heading but the first.
        words (int): How many columns are words, to the left. Defaults to 1.
        notes (list[str]): Sentences under it.
    """
    columns: List[str]
    rows: List[Row]
    words: int = 1
    notes: List[str] = field(default_factory=list)


def main_table(report: Report, kind: str) -> Table:
    """Methods with their numbers, then published rows."""
    results = report['results'][kind]['methods']
    methods, published = report['methods'], report.get('published') or []
    words = {
        name: show for name, show in _WORDS.items()
        if any(show(m) for m in [*methods, *published])
    }
    facts = {
        name: show for name, show in _FACTS.items()
        if any(show(m.get('facts') or {}).text != NONE for m in methods)
    }
    rows = []
    for method in methods:
        numbers = results[method['name']]['numbers']
        own = method.get('facts') or {}
        rows.append(Row(
            method['name'],
            [Cell(show(method) or NONE) for show in words.values()] +
            [Cell(_value(numbers.get(m)),
                  interval(numbers.get(m)) if m == 'AP' else '')
             for m in METRICS] + [show(own) for show in facts.values()],
            method['name']))
    for line in published if kind == 'bbox' else []:
        if line.get('parameters') is not None:  # in millions
            line = dict(line, parameters=1e6 * line['parameters'])
        url = str(line.get('url') or '')
        rows.append(Row(
            str(line.get('method') or ''),
            [Cell(show(line) or NONE) for show in words.values()] +
            [_unknown(Cell(number(line.get(m)))) for m in METRICS] +
            [_unknown(show(line)) for show in facts.values()],
            published=True,
            source=str(line.get('source') or ''),
            # What isn't the address of a page is no link.
            url=quote(url, safe=_URL)
            if url.startswith(('https://', 'http://')) else ''))
    return Table(['method', *words, *METRICS, *facts], rows, 1 + len(words),
                 _notes(report, rows))


_WORDS: Dict[str, Callable[[Mapping[str, Any]], str]] = {
    'encodings': lambda m: str(m.get('encodings') or m.get('encoding') or ''),
    'epochs': lambda m: '' if m.get('epochs') is None else str(m['epochs']),
}


def _parameters(facts: Mapping[str, Any]) -> Cell:
    own = facts.get('encoding_parameters')
    return Cell(large(facts.get('parameters')),
                '' if own is None else f'encoding {large(own)}')


_FACTS: Dict[str, Callable[[Mapping[str, Any]], Cell]] = {
    'parameters': _parameters,
    'GFLOPs': lambda f: Cell(number(f.get('gflops'))),
    's/iteration': lambda f: Cell(number(f.get('seconds_per_iteration'), 3)),
    'memory, MB': lambda f: Cell(number(f.get('memory_mb'), 0)),
    'images/s': lambda f: Cell(
        number((f.get('images_per_second') or {}).get('value'))),
}


def _unknown(cell: Cell) -> Cell:
    """What others haven't published isn't what can't be told."""
    return Cell('–') if cell.text == NONE else cell


def _value(entry: Optional[Mapping[str, Any]], digits: int = 1) -> str:
    return NONE if entry is None else number(entry['value'], digits)


def _notes(report: Report, rows: Sequence[Row]) -> List[str]:
    several = max(len(m['runs']) for m in report['methods']) > 1
    notes = ['Under AP: its 95% interval.' +
             (' Numbers are means over runs.' if several else '')]
    if any('seconds_per_iteration' in str(m) for m in report['methods']):
        notes.append('s/iteration: of the logs, so no benchmark.')
    if any(cell.text == NONE for row in rows for cell in row.cells):
        notes.append(f'{NONE}: nothing to tell it from; for an AP, no object '
                     'of that size.')
    for method in report['methods']:
        facts = method.get('facts') or {}
        if facts.get('gflops_note'):
            notes.append(f'GFLOPs of {method["name"]}: '
                         f'{facts["gflops_note"]}')
        speed = facts.get('images_per_second')
        if speed:
            why = f'; {speed["note"]}' if speed.get('note') else ''
            notes.append(
                f'images/s of {method["name"]}: on {speed.get("device")}, '
                f'{speed.get("size")}, batch {speed.get("batch")}{why}')
    return _together(notes, len(report['methods']))


def _together(notes: Sequence[str], everyone: int) -> List[str]:
    """One sentence for all methods of which the same is said."""
    said: Dict[tuple, List[str]] = {}
    for note in notes:
        head, of, rest = note.partition(' of ')
        name, colon, text = rest.partition(': ')
        alike = head in ('GFLOPs', 'images/s') and of and colon
        key = (head, text) if alike else (note, )
        said.setdefault(key, []).append(name)
    return [
        key[0] if len(key) == 1 else f'{key[0]}: {key[1]}'
        if len(names) == everyone else
        f'{key[0]} of {", ".join(names)}: {key[1]}'
        for key, names in said.items()
    ]


def difference_table(report: Report, kind: str) -> Optional[Table]:
    """All numbers less the baseline's; None if nothing is compared."""
    comparisons = report['results'][kind]['comparisons']
    if not comparisons:
        return None
    rows = [
        Row(c['method'], [
            Cell(_signed(c['numbers'].get(m)),
                 interval(c['numbers'].get(m), 2, True)) for m in METRICS
        ], c['method']) for c in comparisons
    ]
    return Table([f'minus {comparisons[0]["baseline"]}', *METRICS], rows)


def _signed(entry: Optional[Mapping[str, Any]], digits: int = 2) -> str:
    if entry is None or entry.get('value') is None:
        return NONE
    return number(entry['value'], digits, True)


def seeds_table(report: Report, kind: str) -> Table:
    """Each run by itself."""
    results = report['results'][kind]
    runs = {run['name']: run for run in report['runs']}
    rows = []
    for method in report['methods']:
        numbers = results['methods'][method['name']]['numbers']
        for name in method['runs']:
            seed = runs.get(name, {}).get('seed')
            rows.append(Row(
                name, [Cell(NONE if seed is None else str(seed))] + [
                    Cell(number(((numbers.get(m) or {}).get('runs') or {})
                                .get(name), 2)) for m in METRICS
                ] + [Cell(f'{results["runs"][name]["detections"]:,}')],
                method['name']))
    return Table(['run', 'seed', *METRICS, 'detections'], rows)


def class_tables(report: Report, kind: str) -> Dict[str, Optional[Table]]:
    """AP of each class, ``'large'``, and of those with few objects,
    ``'small'``. What stands after the control of false discoveries is
    marked."""
    results = report['results'][kind]
    comparisons = results['comparisons']
    base = report['settings']['baseline']
    runs = [results['runs'][name] for m in report['methods']
            if m['name'] == base for name in m['runs']]
    columns = ['class', 'objects', f'AP, {base}',
               *(c['method'] for c in comparisons)]

    def table(lines: Sequence[Sequence[Mapping[str, Any]]]
              ) -> Optional[Table]:
        rows = []
        for entries in lines:
            name, objects = entries[0]['name'], entries[0]['objects']
            values = [run['classes'].get(name) for run in runs]
            mean = (None if None in values or not values else
                    sum(values) / len(values))
            cells = [Cell(f'{objects:,}'), Cell(number(mean))]
            if comparisons:
                cells += [
                    Cell(_signed(e, 1), interval(e, 1, True),
                         bool(e.get('stands'))) for e in entries
                ]
            rows.append((objects, Row(name, cells)))
        rows = [row for _, row in sorted(rows, key=lambda x: -x[0])]
        return Table(columns, rows) if rows else None

    if not comparisons:
        every = [[dict(c)] for c in report['data']['classes']]
        return dict(large=table([e for e in every if e[0]['objects']]),
                    small=None)
    return {
        size: table([
            line for line in zip(*(c[key] for c in comparisons))
            if line[0]['objects']
        ])
        for size, key in (('large', 'classes'), ('small', 'small_classes'))
    }


def evaluations_table(report: Report, kind: str) -> Optional[Table]:
    """One training tested at several sizes."""
    lines = report['results'][kind]['where'].get('evaluations') or []
    rows = [
        Row(e['method'], [
            Cell(str(e.get('test_scale') or NONE)),
            Cell(NONE if e.get('batch_size') is None else
                 str(e['batch_size'])),
            Cell(NONE if e.get('padding') is None else
                 f'{100 * e["padding"]:.1f}%'),
            Cell(number(e.get('AP'), 2))
        ], e['method']) for e in lines
    ]
    columns = ['method', 'test scale', 'batch', 'padding', 'AP']
    return Table(columns, rows) if rows else None


def group_table(where: Mapping[str, Any], what: str,
                methods: Sequence[str]) -> Table:
    """Recall of groups of objects, or errors of each kind."""
    part = where['errors'] if what == 'errors' else where['groups'][what]
    columns = [what]
    if 'objects' in part:
        columns.append('objects')
    rows = []
    for k, name in enumerate(part['names']):
        cells = [Cell(f'{part["objects"][k]:,}')] if 'objects' in part else []
        for method in methods:
            entry = part.get('differences', {}).get(method)
            value = part['methods'][method][k]
            cells.append(Cell(
                number(value), '' if entry is None or entry[k] is None else
                f'{_signed(entry[k], 1)}; {interval(entry[k], 1, True)}'))
        rows.append(Row(name, cells))
    return Table([*columns, *methods], rows)
