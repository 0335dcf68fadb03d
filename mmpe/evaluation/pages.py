"""A report's pages: for people, for README files, for papers and as data."""
import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, Optional

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mmpe.engine.whole_files import write_whole
from . import page_figures, pictures, tables, wording
from .figures import Style
from .wording import Escaped

KINDS = dict(bbox='Boxes', segm='Masks')
_TEMPLATES = Path(__file__).with_name('templates')
_MARKS = dict(
    o='M13 2.2a3.3 3.3 0 1 1-.01 0z', s='M10 2.5h6v6h-6z',
    D='M13 1.6l3.9 3.9-3.9 3.9-3.9-3.9z', v='M9.4 2.6h7.2L13 9z',
    **{'^': 'M9.4 8.4h7.2L13 2z'})
_DASHES = {'-': '', '--': '5 3', ':': '2 2'}


def write_report(report: Mapping[str, Any], folder: Path) -> Dict[str, Path]:
    """Write ``report.html``, ``.md``, ``.tex`` and ``.json``.

    Args:
        report (Mapping): What :func:`mmpe.evaluation.report.build` gives, with
            what is known of the runs.
        folder (Path): It is made if it isn't there.

    Returns:
        dict[str, Path]: The files by ``'html'``, ``'md'``, ``'tex'`` and
        ``'json'``.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    texts = dict(
        html=_html(report),
        md=_text(report, 'report.md', wording.markdown, _markdown_table),
        tex=_text(report, 'report.tex', wording.latex, _latex_table),
        json=json.dumps(_without_pictures(report), allow_nan=False,
                        ensure_ascii=False, indent=1) + '\n')
    files = {}
    for end, text in texts.items():
        files[end] = folder / f'report.{end}'
        # A lone surrogate, as of a path that isn't UTF-8, can't be written.
        data = text.encode('utf-8', 'backslashreplace')
        write_whole(files[end], lambda part: part.write_bytes(data))
    return files


def _without_pictures(report: Mapping[str, Any]) -> Dict[str, Any]:
    """Which images are shown stays, their pixels are in the page."""
    shown = {
        kind: [{k: v for k, v in p.items() if k != 'picture'} for p in images]
        for kind, images in (report.get('pictures') or {}).items()
    }
    return dict(report, pictures=shown)


def summary(report: Mapping[str, Any]) -> RenderableType:
    """The outcome for a terminal: AP, differences and verdicts."""
    return Group(*(_summary(report, kind) for kind in report['iou_types']))


def _summary(report: Mapping[str, Any], kind: str) -> Table:
    results = report['results'][kind]
    against = {c['method']: c for c in results['comparisons']}
    table = Table(title=KINDS.get(kind, kind), title_justify='left',
                  box=SIMPLE_HEAD)
    table.add_column('method', overflow='fold')
    table.add_column('AP, 95% interval', justify='right', no_wrap=True)
    if against:
        table.add_column('difference', justify='right', no_wrap=True)
        table.add_column('verdict')
    for name, method in results['methods'].items():
        ap = method['numbers'].get('AP')
        around = wording.interval(ap)
        cells = [wording.one_line(name), wording.NONE if ap is None else
                 f'{wording.number(ap["value"])} ({around})']
        if name in against:
            verdict = against[name]['verdict']
            cells += [wording.difference(against[name]['numbers'].get('AP')),
                      wording.NONE if verdict is None else verdict['word'] +
                      ('' if verdict['attributable'] else
                       ', not attributable to the encoding')]
        # Not as str: rich would take brackets in names for its markup.
        table.add_row(*map(Text, cells))
    return table


def _html(report: Mapping[str, Any]) -> str:
    pages = Environment(
        autoescape=True, loader=FileSystemLoader(_TEMPLATES),
        trim_blocks=True, lstrip_blocks=True)
    pages.filters['soft'] = _soft
    pages.globals.update(
        _common(report),
        styles=page_figures.method_styles(report),
        mark_of=_mark,
        forest=page_figures.forest,
        where=page_figures.where_blocks,
        drawn=page_figures.curves(report),
        boxes=dict(truth=pictures.TRUTH, right=pictures.RIGHT,
                   wrong=pictures.WRONG, missed=pictures.MISSED))
    return pages.get_template('report.html').render()


def _text(report: Mapping[str, Any], template: str,
          escape: Callable[[Any], str],
          table: Callable[[Optional[tables.Table]], str]) -> str:
    """A page of which all that the report says is escaped."""
    pages = Environment(
        finalize=escape, loader=FileSystemLoader(_TEMPLATES),
        trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
        # Braces and hashes are LaTeX's.
        variable_start_string='<<', variable_end_string='>>',
        block_start_string='<%', block_end_string='%>',
        comment_start_string='<#', comment_end_string='#>')
    pages.globals.update(_common(report), table=table)
    return pages.get_template(template).render()


def _common(report: Mapping[str, Any]) -> Dict[str, Any]:
    runs = report['runs']
    return dict(
        report=report,
        tables=tables,
        words=wording,
        kinds=[(kind, KINDS.get(kind, kind))
               for kind in report['iou_types']],
        same_work=report.get('same_work'),
        pictures=report.get('pictures') or {},
        reach=(report.get('curves') or {}).get('epochs_to_reach'),
        versions=list(dict.fromkeys(
            name for run in runs for name in run.get('versions') or {})))


def _soft(text: Any) -> Markup:
    """Let a long name break after its punctuation."""
    parts = re.split(r'(?<=[_/.-])(?=[^_/.-])', str(text))
    return Markup('<wbr>').join(map(escape, parts))


def _mark(style: Style) -> Dict[str, str]:
    """A method's line and mark, as parts of an SVG of 26 by 11."""
    return dict(colour=style.colour, shape=_MARKS[style.marker],
                dashes=_DASHES[style.line])


def _markdown_table(table: Optional[tables.Table]) -> str:
    if table is None:
        return Escaped('')
    right = len(table.columns) - table.words
    lines = [[wording.markdown(c) for c in table.columns],
             ['---'] * table.words + ['--:'] * right]
    for row in table.rows:
        name = wording.markdown(row.name)
        if row.published:
            name = f'*{name}*, published'
        lines.append([name, *(_markdown_cell(c) for c in row.cells)])
    return Escaped('\n'.join(f'| {" | ".join(line)} |' for line in lines))


def _markdown_cell(cell: tables.Cell) -> str:
    text = wording.markdown(cell.line)
    return f'**{text}**' if cell.marked else text


def _latex_table(table: tables.Table) -> str:
    """A tabular of booktabs."""
    kinds = 'l' * table.words + 'r' * (len(table.columns) - table.words)
    lines = [r'\begin{tabular}{' + kinds + '}', r'\toprule',
             ' & '.join(map(wording.latex, table.columns)) + r' \\',
             r'\midrule']
    shown = False
    for row in table.rows:
        cells = [wording.latex(x) for x in (
            row.name, *(cell.text for cell in row.cells))]
        if row.published:
            if not shown:
                lines.append(r'\midrule')
            shown = True
            cells = [r'\textcolor{gray}{' + c + '}' for c in cells]
        lines.append(' & '.join(cells) + r' \\')
    return Escaped('\n'.join([*lines, r'\bottomrule', r'\end{tabular}']))
