"""A report as data: what report.json holds and the pages show."""
from dataclasses import dataclass
from pathlib import Path
from typing import (Any, Callable, Dict, List, Mapping, Optional, Sequence,
                    Tuple)

import numpy as np

from mmpe import __version__
from mmpe.engine.usage_error import UsageError
from .compare import draw_images
from .detections import read_detections
from .findings import (by_threshold, compare, own_numbers, seed_spread,
                       where)
from .measure import Measured, MeasuredMethod, measure
from .objects import Objects
from .pictures import choose, draw

VERSION = 1
"""Of the layout of report.json."""
PICTURES = 6


@dataclass(frozen=True)
class Settings:
    """What a report is made with.

    Args:
        resamples (int): Of the images. Defaults to 1000.
        seed (int): Of the resamples and of the random pictures.
            Defaults to 0.
        margin (float): Differences in AP up to this are as good as none.
            Defaults to 0.3.
    """
    resamples: int = 1000
    seed: int = 0
    margin: float = 0.3


@dataclass(frozen=True, eq=False)
class Entry:
    """A run of a method.

    Args:
        name (str): Of the run.
        method (str): Of the method.
        predictions (Mapping[str, Path]): By ``'bbox'`` and ``'segm'``.
        about (Mapping): What else the report says of the run.
    """
    name: str
    method: str
    predictions: Mapping[str, Path]
    about: Mapping[str, Any]


Progress = Callable[[str], Callable[[int], None]]


def build(entries: Sequence[Entry],
          objects: Objects,
          baseline: Optional[str],
          settings: Settings,
          attributable: Mapping[str, Optional[bool]],
          images_dir: Optional[Path] = None,
          progress: Progress = lambda what: lambda n: None) -> Dict[str, Any]:
    """Measure runs and compare methods.

    Args:
        entries (Sequence[Entry]): All runs.
        objects (Objects): The ground truth.
        baseline (str, optional): The method that others are compared with.
            Defaults to the first.
        settings (Settings): How.
        attributable (Mapping[str, bool]): Of each method, whether nothing but
            its encodings differs from the baseline's; None if that isn't
            known.
        images_dir (Path, optional): Where the images are.
        progress (Callable): From what is done next, with resamples, to a
            function that is told how many of them are done.

    Raises:
        UsageError: If a file can't be used, or there is no such baseline.
    """
    names = list(dict.fromkeys(e.method for e in entries))
    if baseline is not None and baseline not in names:
        raise UsageError(f'--baseline must be one of {", ".join(names)}, got '
                         f'{baseline!r}')
    baseline = names[0] if baseline is None else baseline
    weights = draw_images(len(objects.image_ids), settings.resamples,
                          settings.seed)
    kinds = [kind for kind in ('bbox', 'segm')
             if all(kind in e.predictions for e in entries)]
    if not kinds:
        raise UsageError('the runs have no kind of predictions in common')
    out: Dict[str, Any] = dict(
        version=VERSION,
        mmpe=__version__,
        settings=dict(vars(settings), baseline=baseline),
        iou_types=kinds,
        methods=[_method(name, entries, baseline) for name in names],
        runs=[dict(e.about, name=e.name, method=e.method) for e in entries],
        results={})
    for kind in kinds:
        measured = {
            e.name: measure(
                e.name, objects,
                read_detections(str(e.predictions[kind]), objects, kind),
                weights, progress(f'{e.name} ({kind})')) for e in entries
        }
        methods = [
            MeasuredMethod(name, *_distinct(
                [measured[e.name] for e in entries if e.method == name],
                objects.notes)) for name in names
        ]
        out['results'][kind] = _results(methods, baseline, objects, weights,
                                        settings, attributable)
        if kind == kinds[0]:
            out['pictures'] = _pictures(methods, settings, images_dir)
    out['data'] = _data(objects)  # last: its notes are of the runs, too
    return out


def _distinct(runs: Sequence[Measured], notes: List[str]
              ) -> Tuple[List[Measured], List[Measured]]:
    """Runs, and copies of them, which would count as seeds."""
    kept: List[Measured] = []
    copies: List[Measured] = []
    for run in runs:
        twin = next((k for k in kept if len(k.detections.score) == len(
            run.detections.score) and np.array_equal(
                k.detections.score, run.detections.score)
            and np.array_equal(k.detections.box, run.detections.box)), None)
        if twin is None:
            kept.append(run)
        else:
            copies.append(run)
            note = (f'{run.name} has found the very same as {twin.name}, and '
                    'does not count as another seed')
            notes += [note] if note not in notes else []
    return kept, copies


def _data(objects: Objects) -> Dict[str, Any]:
    classes = list(zip(objects.class_names, objects.counts.tolist()))
    return dict(
        ann_file=objects.path,
        images=len(objects.image_ids),
        objects=int((~objects.crowd).sum()),
        crowds=int(objects.crowd.sum()),
        classes=[dict(name=name, objects=n) for name, n in classes],
        without_objects=[name for name, n in classes if not n],
        notes=objects.notes)


def _method(name: str, entries: Sequence[Entry],
            baseline: str) -> Dict[str, Any]:
    own = [e for e in entries if e.method == name]
    return dict(
        name=name,
        is_baseline=name == baseline,
        runs=[e.name for e in own],
        seeds=[e.about.get('seed') for e in own])


def _results(methods: Sequence[MeasuredMethod], baseline: str,
             objects: Objects, weights: np.ndarray, settings: Settings,
             attributable: Mapping[str, Optional[bool]]) -> Dict[str, Any]:
    base = next(m for m in methods if m.name == baseline)
    spread = seed_spread(methods)
    n = len(objects.image_ids)
    return dict(
        methods={
            m.name: dict(
                numbers=own_numbers(m, n),
                by_threshold=[
                    None if np.isnan(v) else float(v)
                    for v in m.of(by_threshold)[0].mean(0)
                ]) for m in methods
        },
        runs={
            run.name: _run(run, objects) for m in methods
            for run in m.all_runs
        },
        comparisons=[
            compare(m, base, objects, settings.margin,
                    attributable.get(m.name), spread) for m in methods
            if m is not base
        ],
        where=where(methods, base, objects, weights))


def _run(run: Measured, objects: Objects) -> Dict[str, Any]:
    values = 100 * run.plain.by_class['AP'][0]
    return dict(
        detections=len(run.detections.score),
        classes={
            name: None if np.isnan(v) else float(v)
            for name, v in zip(objects.class_names, values)
        })


def _pictures(methods: Sequence[MeasuredMethod], settings: Settings,
              folder: Optional[Path]) -> Dict[str, List[Any]]:
    runs = [m.runs[0] for m in methods]
    return {
        kind: [draw(i, runs, [m.name for m in methods], folder)
               for i in images]
        for kind, images in choose(runs, PICTURES, settings.seed).items()
    }
