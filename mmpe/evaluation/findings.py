"""What runs say of each other, as the parts of a report."""
import math
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from .average_precision import (METRICS, Precisions, average_precisions,
                                mean_of_classes)
from .compare import Difference, difference, discoveries
from .errors import KINDS
from .matching import THRESHOLDS
from .measure import Measured, MeasuredMethod, against, all_metrics
from .objects import Objects
from .places import (aspect_weights, counts, groupings, recall_by_group)
from .verdict import judge

FEW_OBJECTS = 20


def number(d: Optional[Difference]) -> Optional[Dict[str, float]]:
    """A number and its 95% interval, in points; None if there is none."""
    if d is None:
        return None
    low, high = d.interval()
    return dict(value=d.value, low=low, high=high, p=d.p_value)


def own_numbers(method: MeasuredMethod, num_images: int) -> Dict[str, Any]:
    """The method's line of the table."""
    found = against(method, None, all_metrics, num_images)
    values = [100 * all_metrics(r.plain)[0] for r in method.all_runs]
    out = {}
    for k, (metric, d) in enumerate(zip(METRICS, found)):
        line = number(d)
        if line is not None:
            del line['p']
            line['runs'] = {
                run.name: float(v[k])
                for run, v in zip(method.all_runs, values)
            }
        out[metric] = line
    return out


def by_threshold(precisions: Precisions) -> np.ndarray:
    return mean_of_classes(precisions.by_threshold)


def seed_spread(methods: Sequence[MeasuredMethod]) -> Optional[float]:
    """The standard deviation of AP between seeds, of all methods that have
    several together; None if none has."""
    values = [m.values('AP')[0] for m in methods]
    degrees = sum(len(v) - 1 for v in values)
    squares = sum(((v - v.mean())**2).sum() for v in values)
    return float(math.sqrt(squares / degrees)) if degrees else None


def compare(method: MeasuredMethod, base: MeasuredMethod, objects: Objects,
            margin: float, attributable: Optional[bool],
            spread: Optional[float]) -> Dict[str, Any]:
    """A method against the baseline.

    Args:
        method (MeasuredMethod): The method.
        base (MeasuredMethod): The baseline.
        objects (Objects): The ground truth.
        margin (float): Differences in AP up to this are as good as none.
        attributable (bool, optional): See :func:`judge`.
        spread (float, optional): What :func:`seed_spread` gives of all runs.
    """
    n = len(objects.image_ids)
    found = against(method, base, all_metrics, n)
    ap = found[0]
    verdict = None
    if ap is not None:
        verdict = vars(judge(ap, margin, attributable, spread, n))
    return dict(
        method=method.name,
        baseline=base.name,
        seeds=[len(method.runs), len(base.runs)],
        covers_seeds=bool(ap is not None and ap.covers_seeds),
        numbers=dict(zip(METRICS, map(number, map(_with_interval, found)))),
        by_threshold=[
            dict(threshold=float(t), **(number(d) or {}))
            for t, d in zip(THRESHOLDS, against(method, base, by_threshold, n))
        ],
        verdict=verdict,
        **_classes(method, base, objects))


def _classes(method: MeasuredMethod, base: MeasuredMethod,
             objects: Objects) -> Dict[str, Any]:
    found = against(method, base, lambda p: p.by_class['AP'],
                    len(objects.image_ids))
    lines, small = [], []
    for k, d in enumerate(found):
        objects_of = int(objects.counts[k])
        line = dict(name=objects.class_names[k], objects=objects_of,
                    **(number(_with_interval(d)) or dict(value=None)))
        (small if objects_of < FEW_OBJECTS else lines).append(line)
    tested = [line for line in lines if line['value'] is not None]
    for line, stands in zip(tested, discoveries([x['p'] for x in tested])):
        line['stands'] = bool(stands)
    return dict(classes=lines, small_classes=small)


def where(methods: Sequence[MeasuredMethod], base: Optional[MeasuredMethod],
          objects: Objects, weights: np.ndarray) -> Dict[str, Any]:
    """Where methods differ: kinds of errors, places, crowds, sizes, shapes of
    images, precision and recall."""
    # The images as they are come first.
    weights = np.concatenate([np.ones((1, weights.shape[1])), weights])
    groups = {}
    for name, grouping in groupings(objects).items():
        numbers = {
            m.name: [recall_by_group(objects, grouping, r.found, weights)
                     for r in m.runs] for m in methods
        }
        groups[name] = dict(
            names=grouping.names,
            objects=counts(grouping),
            **_compared(numbers, base, weights.shape[1]))
    there = np.bincount(objects.image[~objects.crowd],
                        minlength=weights.shape[1])
    per_100 = 100 / np.maximum(weights @ there, 1)[:, None]
    errors = {
        m.name: [per_100 * (weights @ r.errors.counts) for r in m.runs]
        for m in methods
    }
    aspects = aspect_weights(objects)
    return dict(
        groups=groups,
        errors=dict(
            names=list(KINDS),
            gains={
                m.name: [float(np.mean([r.errors.gain[k] for r in m.runs]))
                         for k in KINDS] for m in methods
            },
            **_compared(errors, base, weights.shape[1])),
        precision_recall={
            m.name: {
                str(t): np.mean([r.precision_curve(t) for r in m.runs],
                                0).round(5).tolist() for t in (0.5, 0.75)
            }
            for m in methods
        },
        aspects=dict(
            names=list(aspects),
            images=[int(w.sum()) for w in aspects.values()],
            methods={
                m.name: [_mean_ap(m.runs, w) for w in aspects.values()]
                for m in methods
            }))


def _compared(numbers: Dict[str, List[np.ndarray]],
              base: Optional[MeasuredMethod],
              num_images: int) -> Dict[str, Any]:
    """Numbers of methods and their differences from the baseline's.

    Args:
        numbers (dict[str, list[ndarray]]): Of each run of each method, the
            plain numbers first and then those of the resamples, ``(1 + B,
            K)``.
    """
    out: Dict[str, Any] = dict(methods={}, differences={})
    for name, runs in numbers.items():
        own = np.stack(runs)
        out['methods'][name] = [_finite(v) for v in own[:, 0].mean(0)]
        if base is None or name == base.name:
            continue
        theirs = np.stack(numbers[base.name])
        found = [
            difference(own[:, 0, k], own[:, 1:, k], theirs[:, 0, k],
                       theirs[:, 1:, k], num_images)
            for k in range(own.shape[2])
        ]
        out['differences'][name] = [number(_with_interval(d)) for d in found]
    return out


def _with_interval(d: Optional[Difference]) -> Optional[Difference]:
    """None for a difference in one image alone, whose resamples are alike."""
    return None if d is None or (d.value and not d.error) else d


def _mean_ap(runs: Sequence[Measured], weights: np.ndarray
             ) -> Optional[float]:
    return _finite(100 * np.mean([
        average_precisions(r.matches, weights[None]).mean('AP')[0]
        for r in runs
    ]))


def _finite(value: float) -> Optional[float]:
    return float(value) if math.isfinite(value) else None
