"""Figures of a report, as addresses of SVGs that need no other file.

They are narrow and their letters large, so that a phone shows them too; a wide
page has them side by side. Names of methods are told by their marks, which
the page explains, or truncated.
"""
import base64
import io
import math
import textwrap
import warnings
from functools import wraps
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from .wording import difference, short

WIDTH = 4.  # inches
NAME = 50  # letters
INK, GREY, FAINT, BAND = '#1f2328', '#6e7781', '#e3e6ea', '#eef1f4'
_RC = {
    'font.size': 8.5,
    'font.family': 'sans-serif',
    'font.sans-serif': ['Helvetica', 'Arial', 'Liberation Sans',
                        'DejaVu Sans'],
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.edgecolor': GREY,
    'axes.labelcolor': INK,
    'axes.titlesize': 8.5,
    'axes.grid': True,
    'axes.axisbelow': True,
    'axes.unicode_minus': True,
    'grid.color': FAINT,
    'grid.linewidth': 0.6,
    'text.color': INK,
    'xtick.color': GREY,
    'ytick.color': GREY,
    'xtick.labelcolor': INK,
    'ytick.labelcolor': INK,
    'lines.linewidth': 1.4,
    'lines.markersize': 4.5,
    # The reader's fonts have more letters than ours.
    'svg.fonttype': 'none',
    'svg.hashsalt': 'mmpe',
    # A dollar in a name is a dollar.
    'text.parse_math': False,
}


class Style(NamedTuple):
    """How a method is drawn, the same in all figures.

    Args:
        colour (str): Told apart by colour-blind people too.
        marker (str): Of matplotlib.
        line (str): Of matplotlib.
    """
    colour: str
    marker: str
    line: str


class Series(NamedTuple):
    """What a method has in a figure.

    Args:
        name (str): Of the method.
        style (Style): Its own.
        values (Sequence): Numbers, or entries with intervals; None where
            there are none.
        x (Sequence[float]): Where, if that isn't the same for all.
    """
    name: str
    style: Style
    values: Sequence[Any]
    x: Sequence[float] = ()


_MARKERS = 'os^Dv'
_COLOURS = ('#3d444d', '#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b8860b',
            '#56a5d8', '#6f3a96', '#8c6239', '#6b8e23')


def styles(count: int) -> List[Style]:
    """Styles of methods; the first is the baseline's."""
    lines = ('-', '--', ':')
    return [
        Style(_COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)],
              lines[i // len(_COLOURS) % len(lines)]) for i in range(count)
    ]


def _svg(draw: Callable[..., Figure]) -> Callable[..., str]:
    """Make a function that draws a figure return its address."""

    @wraps(draw)
    def address(*args, **kwargs) -> str:
        buffer = io.BytesIO()
        with matplotlib.rc_context(_RC), warnings.catch_warnings():
            warnings.filterwarnings('ignore', 'Glyph .* missing')
            draw(*args, **kwargs).savefig(
                buffer, format='svg', metadata=dict(Date=None, Creator=None))
        data = base64.b64encode(buffer.getvalue()).decode()
        return f'data:image/svg+xml;base64,{data}'

    return address


def _figure(height: float) -> Figure:
    return Figure(figsize=(WIDTH, height), layout='constrained')


@_svg
def forest(series: Sequence[Series], margin: float, unit: str) -> Figure:
    """Differences from the baseline, a line each, with the margin's band.

    Args:
        series (Sequence[Series]): With one entry each.
        margin (float): Half the band.
        unit (str): What the axis says.
    """
    # Long names have a line of their own.
    tall = any(len(s.name) > 28 for s in series)
    figure = _figure((0.52 if tall else 0.38) * len(series) + 0.55)
    axes = figure.subplots()
    axes.grid(axis='y', visible=False)
    axes.spines['left'].set_visible(False)
    axes.axvspan(-margin, margin, color=BAND, zorder=0)
    axes.axvline(0, color=GREY, linewidth=0.9)
    for row, (name, style, (entry, ), _) in enumerate(series):
        axes.text(0, row - (0.34 if tall else 0.26), short(name, NAME),
                  fontweight='bold', transform=axes.get_yaxis_transform(),
                  va='center')
        axes.text(1, row - (0.04 if tall else 0.26), difference(entry),
                  va='center', ha='right',
                  transform=axes.get_yaxis_transform())
        _whisker(axes, row + (0.26 if tall else 0.16), entry, style, True)
    axes.set_ylim(len(series) - 0.45, -0.55)
    axes.set_yticks([])
    axes.margins(x=0.04)
    axes.set_xlabel(unit)
    return figure


@_svg
def lines(series: Sequence[Series], xlabel: str, ylabel: str,
          marks: bool = True, whole: bool = False) -> Figure:
    """Lines of numbers.

    Args:
        series (Sequence[Series]): With their ``x``.
        xlabel (str): Of the axis.
        ylabel (str): Of the axis.
        marks (bool): Whether each number has a mark. Defaults to True.
        whole (bool): Whether both axes go from 0 to 1. Defaults to False.
    """
    figure = _figure(2.7)
    axes = figure.subplots()
    for _, style, values, x in series:
        axes.plot(x, _numbers(values), color=style.colour,
                  linestyle=style.line, marker=style.marker if marks else None,
                  alpha=0.9)
    if whole:
        axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    return figure


@_svg
def groups(names: Sequence[str], series: Sequence[Series], ylabel: str,
           connected: bool = True) -> Figure:
    """Numbers of each group, the methods beside each other.

    Args:
        names (Sequence[str]): Of the groups.
        series (Sequence[Series]): A value for each group.
        ylabel (str): Of the axis.
        connected (bool): Whether groups have an order that a line may follow.
            Defaults to True.
    """
    figure = _figure(2.7)
    axes = figure.subplots()
    axes.grid(axis='x', visible=False)
    for place, (_, style, values, _) in zip(_beside(len(series)), series):
        axes.plot(np.arange(len(names)) + place, _numbers(values),
                  color=style.colour, marker=style.marker,
                  linestyle=style.line if connected else 'none',
                  linewidth=0.8, alpha=0.9)
    _name_groups(axes, names)
    axes.set_ylabel(ylabel)
    return figure


@_svg
def strips(names: Sequence[str], series: Sequence[Series],
           label: str) -> Figure:
    """Differences of each group with their intervals, a strip for each method.

    Args:
        names (Sequence[str]): Of the groups.
        series (Sequence[Series]): An entry for each group.
        label (str): Of the axes.
    """
    each = 0.82 if len(series) < 5 else 0.66
    figure = _figure(max(each * len(series) + 0.6, 1.8))
    all_axes = figure.subplots(
        len(series), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, (name, style, entries, _) in zip(all_axes, series):
        axes.grid(axis='x', visible=False)
        axes.axhline(0, color=GREY, linewidth=0.9)
        for i, entry in enumerate(entries):
            _whisker(axes, i, entry, style)
        axes.set_title(short(name, NAME), loc='left', fontweight='bold', pad=3)
        axes.tick_params(axis='x', length=0)
        axes.spines['bottom'].set_visible(False)
        axes.locator_params(axis='y', nbins=4)
    _name_groups(all_axes[-1], names)
    figure.supylabel(label, fontsize=8.5)
    return figure


@_svg
def cells(values: Sequence[Optional[float]], texts: Sequence[str],
          marked: Sequence[bool], limit: float, signed: bool) -> Figure:
    """A grid of numbers with what is written in each cell.

    Args:
        values (Sequence[float]): Of the cells, row by row; None is empty.
        texts (Sequence[str]): The first line is set larger.
        marked (Sequence[bool]): Which cells get a frame.
        limit (float): Number of the darkest colour.
        signed (bool): Whether numbers go from ``-limit``, or from 0.
    """
    side = math.isqrt(len(values))
    figure = _figure(3.05)
    axes = figure.subplots()
    grid = _numbers(values).reshape(side, side)
    colours = matplotlib.colormaps['PuOr_r' if signed else 'Blues']
    colours = colours.with_extremes(bad='#f6f7f8')
    # Never the darkest ones, on which dark text can't be read.
    reach = 1.9 * max(limit, 1e-9)
    edges = np.arange(side + 1) - 0.5
    axes.pcolormesh(edges, edges, grid, cmap=colours, edgecolor='white',
                    linewidth=1.5, vmin=-reach if signed else 0, vmax=reach)
    axes.invert_yaxis()
    for i, text in enumerate(texts):
        row, column = divmod(i, side)
        first, _, rest = text.partition('\n')
        axes.text(column, row - 0.17 if rest else row, first, ha='center',
                  va='center', fontsize=9, fontweight='bold')
        axes.text(column, row + 0.2, rest, ha='center', va='center',
                  fontsize=7.2)
        if marked[i]:
            axes.add_patch(Rectangle(
                (column - 0.46, row - 0.46), 0.92, 0.92, fill=False,
                linewidth=1.6, edgecolor=INK))
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return figure


def _whisker(axes, place: float, entry: Optional[dict], style: Style,
             across: bool = False) -> None:
    if not entry or entry.get('value') is None:
        return
    ends = [place, place], [entry['low'], entry['high']]
    point = [place], [entry['value']]
    look = dict(color=style.colour, linewidth=1.6)
    axes.plot(*ends[::-1 if across else 1], solid_capstyle='butt', **look)
    axes.plot(*point[::-1 if across else 1], marker=style.marker, **look)


def _numbers(values: Sequence[Optional[float]]) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], float)


def _beside(count: int) -> np.ndarray:
    """Where around a group's place its methods are."""
    reach = min(0.09 * (count - 1), 0.62) / 2
    return np.linspace(-reach, reach, count)


def _name_groups(axes, names: Sequence[str]) -> None:
    most = max(46 // max(len(names), 1), 5)
    axes.set_xticks(range(len(names)), [
        '\n'.join(line for part in one.split('\n')
                  for line in textwrap.wrap(part, most, break_long_words=False)
                  ) for one in names
    ], fontsize=7.5)
    axes.set_xlim(-0.5, len(names) - 0.5)
