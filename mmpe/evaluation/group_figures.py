"""Figures of what methods do with groups of objects and of images."""
import math
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import figures
from .figures import Series, Style
from .findings import FEW_OBJECTS
from .wording import NONE, few, number

_RECALL = ('Recall is the share of objects found, a mean over the ten '
           'IoU thresholds.')


class Picture(NamedTuple):
    """A figure on the page.

    Args:
        src (str): Its address.
        alt (str): What it is.
        caption (str): What stands over it.
    """
    src: str
    alt: str
    caption: str


class Block(NamedTuple):
    """Figures of one question.

    Args:
        title (str): The question's.
        how (str): How to read them.
        pictures (list[Picture]): At least one.
        name (str): Of the question, for what belongs to it on the page.
    """
    title: str
    how: str
    pictures: List[Picture]
    name: str


def others(part: Mapping[str, Any], own: Mapping[str, Style]) -> List[Series]:
    """Differences of all methods but the baseline."""
    return [Series(m, own[m], d) for m, d in part['differences'].items()]


def everyone(values: Mapping[str, Any],
             own: Mapping[str, Style]) -> List[Series]:
    """Numbers of all methods."""
    return [Series(m, own[m], v) for m, v in values.items()]


_GROUPS = dict(
    size=('Size of the object', "COCO's sizes: small is an area under 32², "
          'large from 96² pixels on.'),
    border=('Distance to the border', 'From the box to the nearest border of '
            'the image, in shares of its side: objects at the left are at the '
            'border.'),
    crowding=('Crowding',
              "By how many other objects an object's box overlaps."))


def _counted(names: Sequence[str], counts: Sequence[int]) -> List[str]:
    return [f'{name}\nn={n:,}' for name, n in zip(names, counts)]


def group(name: str, part: Mapping[str, Any], own: Mapping[str, Style],
          base: str) -> Block:
    """Recall of objects by size, distance to the border or crowding."""
    title, how = _GROUPS[name]
    names = _counted(part['names'], part['objects'])
    pictures = [Picture(
        figures.groups(names, everyone(part['methods'], own), 'recall, %'),
        f'Recall by {title.lower()}', 'Recall')]
    if part['differences']:
        pictures.append(Picture(
            figures.strips(names, others(part, own), 'difference in recall'),
            f'Recall minus that of {base}, by {title.lower()}',
            f'Recall minus that of {base}, 95% intervals'))
    return Block(title, f'{how} {_RECALL} n is how many objects there are.',
                 pictures, name)


def place(name: str, part: Mapping[str, Any], own: Mapping[str, Style],
          base: str) -> Block:
    """Recall of objects by where they are in the image."""
    counts = part['objects']
    enough = [n >= FEW_OBJECTS for n in counts]
    recall = part['methods'][base]
    pictures = [Picture(
        figures.cells(
            recall,
            ['' if v is None else f'{number(v, 0)}%\nn={n:,}'
             for v, n in zip(recall, counts)], [False] * len(recall), 100,
            False),
        f'Recall of {base} in a grid of the image', f'{base}: recall')]
    limit = max([abs(e['value']) for d in part['differences'].values()
                 for e in d if e], default=1)
    for method, entries in part['differences'].items():
        pictures.append(Picture(
            figures.cells(
                [e and e['value'] for e in entries],
                [_cell(e) for e in entries],
                [bool(e) and many and (e['low'] > 0 or e['high'] < 0)
                 for e, many in zip(entries, enough)], limit, True),
            f'Recall of {method} minus that of {base} in a grid of the image',
            f'{method} minus {base}'))
    return Block(
        'Place in the image',
        'The image without its padding, in 5 by 5 parts; an object is where '
        f'its centre is. {_RECALL}' + (
            ' Under each difference is its 95% interval. A frame: without 0 '
            f'in it, and {FEW_OBJECTS} objects or more; by chance one cell in '
            'twenty has one. No interval: too few images to tell.'
            if part['differences'] else ''),
        pictures, name)


def _cell(entry: Optional[Mapping[str, Any]]) -> str:
    if not entry:
        return ''
    value = number(entry['value'], 1, True)
    if entry['value'] and entry['high'] - entry['low'] < 1e-9:
        # Its objects are in one image: resamples are all the same.
        return f'{value}\nno interval'
    digits = 0 if max(abs(entry['low']), abs(entry['high'])) >= 10 else 1
    low, high = (number(entry[k], digits, True) for k in ('low', 'high'))
    return f'{value}\n{low} to {high}'


def aspects(part: Mapping[str, Any], own: Mapping[str, Style]) -> Block:
    """AP by the shape of the image."""
    names = [f'{name}\n{few(n, "image")}'
             for name, n in zip(part['names'], part['images'])]
    return Block(
        'Shape of the image',
        'AP of the images of each shape, width over height.',
        [Picture(figures.groups(names, everyone(part['methods'], own), 'AP'),
                 'AP of each method by the shape of the image', 'AP')],
        'aspects')


def evaluations(lines: Sequence[Mapping[str, Any]],
                own: Mapping[str, Style]) -> Block:
    """AP of the same checkpoints by the size at test."""
    sizes = sorted({_size(e) for e in lines}, key=lambda s: (_pixels(s[0]), s))
    batches = len({batch for _, batch in sizes}) > 1
    series = []
    for method in dict.fromkeys(e['method'] for e in lines):
        found = {_size(e): e['AP'] for e in lines if e['method'] == method}
        series.append(
            Series(method, own[method], [found.get(s) for s in sizes]))
    names = [f'{scale}\nbatch {batch}' if batches else scale
             for scale, batch in sizes]
    return Block(
        'Test size', 'The same checkpoints, tested at other sizes. Padding is '
        'its mean share of a batch.',
        [Picture(figures.groups(names, series, 'AP'),
                 'AP of each method by the size at test', 'AP')],
        'evaluations')


def _size(evaluation: Mapping[str, Any]) -> Tuple[str, str]:
    return tuple(str(evaluation.get(k) or NONE)
                 for k in ('test_scale', 'batch_size'))


def _pixels(scale: str) -> float:
    sides = [float(x) for x in scale.split('x')
             if x.replace('.', '', 1).isdigit()]
    return math.prod(sides) if sides else math.inf
