"""Which figures a report shows, and how to read them."""
from typing import Any, Dict, List, Mapping, Sequence

import numpy as np

from . import figures
from .figures import Series, Style
from .group_figures import (Block, Picture, aspects, evaluations, everyone,
                            group, others, place)
from .matching import THRESHOLDS
from .wording import few

MOST_POINTS = 150
"""Of a training curve."""


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
            draw = place if name == 'place' else group
            blocks.append(draw(name, where['groups'][name], own, base))
    if any(where['aspects']['images']):
        blocks.append(aspects(where['aspects'], own))
    if where.get('evaluations'):
        blocks.append(evaluations(where['evaluations'], own))
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
                              marks=max(len(s.x) for s in series) < 30),
                f'{label} of {runs}', f'{label[0].upper()}{label[1:]}'))
    return pictures


def _thin(points: Sequence[Sequence[float]]):
    """At most ``MOST_POINTS`` points, each a mean of neighbours."""
    parts = np.array_split(np.array(points, float),
                           min(len(points), MOST_POINTS))
    means = np.array([p.mean(0) for p in parts])
    return means[:, 0].tolist(), means[:, 1].tolist()


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
        'found, a mean over classes. AP is the area under it.', pictures,
        'precision')


def _errors(where: Mapping[str, Any], own: Mapping[str, Style],
            base: str) -> Block:
    errors = where['errors']
    pictures = [Picture(
        figures.groups(errors['names'], everyone(errors['gains'], own),
                       'gain in AP50', connected=False),
        'Gain in AP50 from correcting each kind of error', 'AP50 to gain')]
    if errors['differences']:
        pictures.append(Picture(
            figures.strips(errors['names'], others(errors, own),
                           'errors per 100 objects'),
            f'Errors per 100 objects minus those of {base}',
            f'Errors per 100 objects minus those of {base}, 95% intervals'))
    return Block(
        'Kinds of errors',
        'How many points of AP50 correcting all errors of one kind would add: '
        'the higher, the more that kind costs.' + (
            f' In the differences, below 0 is fewer errors than {base}.'
            if errors['differences'] else ''), pictures, 'errors')
