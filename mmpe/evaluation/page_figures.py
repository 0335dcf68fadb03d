"""Which figures a report shows, and how to read them."""
import math
from typing import (Any, Dict, List, Mapping, NamedTuple, Optional, Sequence,
                    Tuple)

import numpy as np

from . import figures
from .figures import Series, Style
from .findings import FEW_OBJECTS
from .matching import THRESHOLDS
from .wording import NONE, few, number

MOST_POINTS = 150
"""Of a training curve."""
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


def method_styles(report: Mapping[str, Any]) -> Dict[str, Style]:
    """The baseline's style is the first; others keep theirs in all figures."""
    names = sorted(report['methods'], key=lambda m: not m['is_baseline'])
    return dict(zip((m['name'] for m in names), figures.styles(len(names))))


def forest(report: Mapping[str, Any], kind: str) -> List[Picture]:
    """Differences in AP; none if nothing is compared."""
    own = method_styles(report)
    comparisons = [c for c in report['results'][kind]['comparisons']
                   if c['numbers'].get('AP')]
    if not comparisons:
        return []
    base = report['settings']['baseline']
    series = [Series(c['method'], own[c['method']], [c['numbers']['AP']])
              for c in comparisons]
    margin = report['settings']['margin']
    return [Picture(
        figures.forest(series, margin, 'difference in AP'),
        f'AP of each method minus that of {base}, with 95% intervals.',
        f'AP minus that of {base}, 95% intervals; grey: the margin, '
        f'±{margin:g}')]


def where_blocks(report: Mapping[str, Any], kind: str) -> List[Block]:
    """All figures of where methods differ."""
    results = report['results'][kind]
    own, where = method_styles(report), results['where']
    base = report['settings']['baseline']
    blocks = [_thresholds(results, own, base),
              _precision_recall(where, own), _errors(where, own, base)]
    for name in ('size', 'place', 'border', 'crowding'):
        if sum(where['groups'][name]['objects']):
            draw = _place if name == 'place' else _group
            blocks.append(draw(name, where['groups'][name], own, base))
    if any(where['aspects']['images']):
        blocks.append(_aspects(where['aspects'], own))
    if where.get('evaluations'):
        blocks.append(_evaluations(where['evaluations'], own))
    return blocks


def curves(report: Mapping[str, Any]) -> List[Picture]:
    """Training curves of all runs; none without logs."""
    own, found = method_styles(report), report.get('curves') or {}
    methods = {r['name']: r['method'] for r in report['runs']}
    pictures = []
    for what, label in (('loss', 'training loss'), ('ap', 'validation AP')):
        series = [
            Series(run, own[methods[run]], *_thin(curve[what])[::-1])
            for run, curve in (found.get('runs') or {}).items()
            if curve.get(what)
        ]
        if series:
            runs = few(len(series), 'run')
            pictures.append(Picture(
                figures.lines(series, found.get('x', 'epoch'), label,
                              marks=what == 'ap'),
                f'{label} of {runs}', f'{label[0].upper()}{label[1:]}'))
    return pictures


def _thin(points: Sequence[Sequence[float]]):
    """At most ``MOST_POINTS`` points, each a mean of neighbours."""
    parts = np.array_split(np.array(points, float),
                           min(len(points), MOST_POINTS))
    means = np.array([p.mean(0) for p in parts])
    return means[:, 0].tolist(), means[:, 1].tolist()


def _others(part: Mapping[str, Any], own: Mapping[str, Style]
            ) -> List[Series]:
    return [Series(m, own[m], d) for m, d in part['differences'].items()]


def _all(values: Mapping[str, Any], own: Mapping[str, Style]) -> List[Series]:
    return [Series(m, own[m], v) for m, v in values.items()]


def _thresholds(results: Mapping[str, Any], own: Mapping[str, Style],
                base: str) -> Block:
    x = [round(float(t), 2) for t in THRESHOLDS]
    series = [Series(name, own[name], m['by_threshold'], x)
              for name, m in results['methods'].items()]
    pictures = [Picture(
        figures.lines(series, 'IoU threshold', 'AP'),
        'AP of each method at IoU thresholds from 0.5 to 0.95',
        'AP by IoU threshold')]
    if results['comparisons']:
        series = [Series(c['method'], own[c['method']], c['by_threshold'])
                  for c in results['comparisons']]
        names = [f'{t:.2f}'[1:] for t in x]
        pictures.append(Picture(
            figures.strips(names, series, 'difference in AP'),
            f'AP minus that of {base} at each IoU threshold',
            f'AP minus that of {base}, 95% intervals'))
    return Block(
        'IoU threshold',
        'From left to right a box must lie closer to the object to count. '
        'What only helps to place boxes shows at the right.', pictures,
        'threshold')


def _precision_recall(where: Mapping[str, Any], own: Mapping[str, Style]
                      ) -> Block:
    pictures = []
    for t in ('0.5', '0.75'):
        series = [
            Series(name, own[name], curves[t], np.linspace(
                0, 1, len(curves[t])).tolist())
            for name, curves in where['precision_recall'].items()
        ]
        pictures.append(Picture(
            figures.lines(series, 'recall', 'precision', False, True),
            f'Precision by recall of each method at IoU {t}', f'IoU {t}'))
    return Block(
        'Precision and recall',
        'The share of detections that are right, by the share of objects '
        'found, a mean over classes. AP is the area '
        'under it.', pictures,
        'precision')


def _errors(where: Mapping[str, Any], own: Mapping[str, Style],
            base: str) -> Block:
    errors = where['errors']
    pictures = [Picture(
        figures.groups(errors['names'], _all(errors['gains'], own),
                       'gain in AP50', connected=False),
        'Gain in AP50 from correcting each kind of error', 'AP50 to gain')]
    if errors['differences']:
        pictures.append(Picture(
            figures.strips(errors['names'], _others(errors, own),
                           'errors per 100 objects'),
            f'Errors per 100 objects minus those of {base}',
            f'Errors per 100 objects minus those of {base}, 95% intervals'))
    return Block(
        'Kinds of errors',
        'How many points of AP50 correcting all errors of one kind would add: '
        'the higher, the more that kind costs.' + (
            f' In the differences, below 0 is fewer errors than {base}.'
            if errors['differences'] else ''), pictures, 'errors')


_GROUPS = dict(
    size=('Size of the object', 'COCO\'s sizes: small is an area under 32², '
          'large from 96² pixels on.'),
    border=('Distance to the border', 'From the box to the nearest border of '
            'the image, in shares of its side: objects at the left are at the '
            'border.'),
    crowding=('Crowding', 'By how many other objects an object\'s box '
              'overlaps.'))


def _counted(names: Sequence[str], counts: Sequence[int]) -> List[str]:
    return [f'{name}\nn={n:,}' for name, n in zip(names, counts)]


def _group(name: str, part: Mapping[str, Any], own: Mapping[str, Style],
           base: str) -> Block:
    title, how = _GROUPS[name]
    names = _counted(part['names'], part['objects'])
    pictures = [Picture(
        figures.groups(names, _all(part['methods'], own), 'recall, %'),
        f'Recall by {title.lower()}', 'Recall')]
    if part['differences']:
        pictures.append(Picture(
            figures.strips(names, _others(part, own), 'difference in recall'),
            f'Recall minus that of {base}, by {title.lower()}',
            f'Recall minus that of {base}, 95% intervals'))
    return Block(title, f'{how} {_RECALL} n is how many objects there are.',
                 pictures, name)


def _place(name: str, part: Mapping[str, Any], own: Mapping[str, Style],
           base: str) -> Block:
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
            'twenty has one.' if part['differences'] else ''),
        pictures, name)


def _cell(entry: Optional[Mapping[str, Any]]) -> str:
    if not entry:
        return ''
    value = number(entry['value'], 1, True)
    if entry['value'] and entry['high'] - entry['low'] < 1e-9:
        # All objects are in one image, of which resamples tell nothing.
        return f'{value}\nno interval'
    digits = 0 if max(abs(entry['low']), abs(entry['high'])) >= 10 else 1
    low, high = (number(entry[k], digits, True) for k in ('low', 'high'))
    return f'{value}\n{low} to {high}'


def _aspects(part: Mapping[str, Any], own: Mapping[str, Style]) -> Block:
    names = [f'{name}\n{few(n, "image")}'
             for name, n in zip(part['names'], part['images'])]
    return Block(
        'Shape of the image',
        'AP of the images of each shape, width over height.',
        [Picture(figures.groups(names, _all(part['methods'], own), 'AP'),
                 'AP of each method by the shape of the image', 'AP')],
        'aspects')


def _evaluations(lines: Sequence[Mapping[str, Any]],
                 own: Mapping[str, Style]) -> Block:
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
