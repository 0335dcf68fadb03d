"""Numbers as words, and text of files made safe for LaTeX and Markdown."""
import math
import re
from typing import Any, Dict, List, Mapping, Optional, Tuple

MINUS = '\u2212'
NONE = 'n/a'
# Line breaks and what no page shows.
_CONTROL = re.compile(r'[\x00-\x1f\x7f-\x9f\u2028\u2029]+')
_LATEX = {
    '\\': r'\textbackslash{}', '{': r'\{', '}': r'\}', '$': r'\$',
    '&': r'\&', '#': r'\#', '%': r'\%', '_': r'\_', '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}', '<': r'\textless{}', '>': r'\textgreater{}',
    '|': r'\textbar{}', '"': r'\textquotedbl{}', MINUS: r'$-$'
}
_MARKDOWN = dict({c: '\\' + c for c in '\\`*_{}[]|#~$!'},
                 **{'<': '&lt;', '>': '&gt;', '&': '&amp;'})


class Escaped(str):
    """Text that is what its format takes."""


def latex(value: Any) -> str:
    """Text as LaTeX sets it."""
    return _escape(value, _LATEX)


def markdown(value: Any) -> str:
    """Text as Markdown shows it, on one line and in a table too."""
    return _escape(value, _MARKDOWN)


def _escape(value: Any, table: Mapping[str, str]) -> str:
    if isinstance(value, Escaped):
        return value
    return Escaped(''.join(table.get(c, c) for c in one_line(value)))


def one_line(value: Any) -> str:
    return _CONTROL.sub(' ', '' if value is None else str(value))


def number(value: Optional[float], digits: int = 1,
           sign: bool = False) -> str:
    """A number with a real minus sign; n/a for None."""
    if value is None or not math.isfinite(value):
        return NONE
    text = f'{value:{"+" if sign else ""},.{digits}f}'
    if not float(text.replace(',', '')):
        text = text.lstrip('+-')  # neither -0.0 nor +0.0
    return text.replace('-', MINUS)


def interval(entry: Optional[Mapping[str, Any]], digits: int = 1,
             sign: bool = False) -> str:
    """Of an entry with ``low`` and ``high``; empty without."""
    if not entry or entry.get('low') is None:
        return ''
    low, high = (number(entry[k], digits, sign) for k in ('low', 'high'))
    return f'{low} to {high}'


def difference(entry: Optional[Mapping[str, Any]], digits: int = 2) -> str:
    """A difference and its interval."""
    if not entry or entry.get('value') is None:
        return NONE
    around = interval(entry, digits, True)
    return number(entry['value'], digits, True) + (
        f' ({around})' if around else '')


def large(value: Optional[float]) -> str:
    """A count of parameters: ``41.6M``, ``15.6k``."""
    if value is None:
        return NONE
    for size, letter in ((1e9, 'G'), (1e6, 'M'), (1e3, 'k')):
        if value >= size:
            return f'{value / size:.3g}{letter}' if value < 100 * size else (
                f'{value / size:.0f}{letter}')
    return f'{value:g}'


def signs(text: str) -> str:
    """A sentence with real minus signs before its numbers."""
    return re.sub(r'(?<![\w.,-])-(?=\d)', MINUS, text)


def few(n: int, one: str, several: str = '') -> str:
    """``1 seed``, ``3 seeds``, ``5,000 images``."""
    return f'{n:,} {one if n == 1 else several or one + "s"}'


def short(text: str, most: int) -> str:
    """Names often differ at their end: what is left out is in the middle."""
    text = one_line(text)
    if len(text) <= most:
        return text
    head = most // 2
    return f'{text[:head]}…{text[len(text) - most + head + 1:]}'


def alike(values: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """Names of runs or methods that have the same value, and the value; the
    many that have the usual one are counted."""
    said: Dict[str, List[str]] = {}
    for name, value in values.items():
        said.setdefault(str(value), []).append(name)
    usual = max(map(len, said.values()), default=0)
    return [
        (f'the other {len(names)}' if len(said) > 1 and len(names) == usual > 4
         else ', '.join(names), value)
        for value, names in sorted(said.items(), key=lambda x: len(x[1]))
    ]


def seeds_sentence(comparison: Mapping[str, Any]) -> str:
    """How many seeds would tell the observed difference from none."""
    verdict = comparison['verdict']
    n = verdict['seeds_needed']
    if verdict['seed_spread'] is None:
        return ('How many seeds a difference of this size would need is not '
                'known: on so few images AP may vary much between seeds.')
    spread = (f'that AP varies by {verdict["seed_spread"]:.2f} between seeds '
              '(standard deviation), which '
              + ('is assumed' if verdict['spread_is_assumed'] else
                 'these runs show'))
    if n is None:
        return ('On these images not even 100 seeds a side would tell a '
                f'difference of this size from no difference, given {spread}.')
    return (f'A difference of this size would need {few(n, "seed")} a side '
            f'to be told from no difference on these images, given {spread}.'
            )
