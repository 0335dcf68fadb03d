"""Runs that differ in the seed only are one method."""
import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional, Sequence, Tuple

from mmpe.engine.usage_error import UsageError
from mmpe.nearest import did_you_mean
from .encodings import encodings_in_words, encodings_of
from .run import Run
from .settings import content_of, settings_of


@dataclass(frozen=True, eq=False)
class Method:
    """What was run once or with several seeds.

    Args:
        name (str): Told apart from those of other methods.
        runs (tuple[Run]): At least one.
        encodings (str, optional): In words; None without a config.
    """
    name: str
    runs: Tuple[Run, ...]
    encodings: Optional[str]

    @property
    def seeds(self) -> Tuple[Optional[int], ...]:
        return tuple(run.seed for run in self.runs)


def group_runs(runs: Sequence[Run]) -> List[Method]:
    """The methods of some runs, in the order in which they first come.

    Files of predictions under one name are one method; other runs without a
    config are one each. A method is called as its
    config is, without the words that all begin or end with, or, if another is
    called so, as its config and its first run.
    """
    groups: Dict[Any, List[Run]] = {}
    for run in runs:
        groups.setdefault(_key(run), []).append(run)
    methods = [
        Method(
            group[0].config or group[0].label or group[0].name, tuple(group),
            None if group[0].any_cfg is None else encodings_in_words(
                _tested(group[0]))) for group in groups.values()
    ]
    methods = _without_common_words(methods)
    counts = Counter(method.name for method in methods)
    return [
        replace(method, name=f'{method.name} ({method.runs[0].name})')
        if counts[method.name] > 1 and method.runs[0].config else method
        for method in methods
    ]


def _without_common_words(methods: List[Method]) -> List[Method]:
    """``sine`` and ``peg`` for ``detr_r50_sine_8xb4-50e_coco`` and
    ``detr_r50_peg_8xb4-50e_coco``."""
    if len({m.name for m in methods}) < 2:
        return methods
    words = [m.name.split('_') for m in methods]
    before = len(os.path.commonprefix(words))
    after = len(os.path.commonprefix([w[::-1] for w in words]))
    names = ['_'.join(w[before:len(w) - after]) for w in words]
    if not all(names):  # such as detr_r50 and detr_r50_peg
        return methods
    return [replace(m, name=name) for m, name in zip(methods, names)]


def find_method(methods: Sequence[Method], name: str) -> Method:
    """The method that is called ``name``, or that has a run or a config called
    so.

    Raises:
        UsageError: If there is none, with the name that may be meant.
    """
    for method in methods:
        if name == method.name or any(
                name in (run.name, run.config) for run in method.runs):
            return method
    known = [method.name for method in methods] + [
        run.name for method in methods for run in method.runs
    ]
    raise UsageError(f'no method or run is called {name}.'
                     f'{did_you_mean(name, known)} Known: '
                     f'{", ".join(dict.fromkeys(known))}')


def _tested(run: Run) -> Any:
    return run.any_cfg if run.cfg is None else run.cfg


def _key(run: Run) -> Any:
    settings = settings_of(run)
    if settings is None:
        return run.label or run.name
    return json.dumps(
        [settings, encodings_of(_tested(run)),
         content_of(run.load_from or '')],
        sort_keys=True,
        default=str)
