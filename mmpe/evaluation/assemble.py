"""A whole report: what runs are, what they found, how they differ."""
import json
import math
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np
import torch

from .checks import (attributable, check_data, other_numbers, test_data,
                     trained_since)
from .group import Method, find_method, group_runs
from .model_facts import image_size, images_per_second, model_facts
from .objects import read_objects
from .places import share_of_padding
from .published import ROWS, PublishedRow
from .report import Entry, Progress, Settings, build
from .run import Run, read_runs
from .same_work import same_work
from .tested_data import pipeline_of, setting
from .training_log import TrainingLog, read_training_log


def make_report(texts: Sequence[str],
                settings: Settings,
                ann: Optional[str] = None,
                baseline: Optional[str] = None,
                images_dir: Optional[str] = None,
                published: bool = False,
                speed: bool = False,
                progress: Progress = lambda what: lambda n: None
                ) -> Dict[str, Any]:
    """Read runs and put all that a report says of them together.

    Args:
        texts (Sequence[str]): Work dirs, or ``name=predictions.bbox.json``.
        settings (Settings): How numbers are compared.
        ann (str, optional): The annotation file, rather than the configs'.
        baseline (str, optional): The method, or a run of it, that others are
            compared with. Defaults to the first.
        images_dir (str, optional): Where the images are, rather than where
            the configs say.
        published (bool): Whether rows of papers are shown beside.
            Defaults to False.
        speed (bool): Whether the models' speed is measured.
            Defaults to False.
        progress (Callable): See :func:`~mmpe.evaluation.report.build`.

    Raises:
        UsageError: If a run can't be read, or the runs are of other data.
    """
    runs = read_runs(texts, ann)
    objects = read_objects(str(runs[0].ann_file), runs[0].classes)
    methods = group_runs(runs)
    base = methods[0] if baseline is None else find_method(methods, baseline)
    findings = same_work(methods, base)
    check_data(findings)
    findings += [*test_data(runs, len(objects.image_ids)),
                 *trained_since(methods)]
    blame = attributable(methods, base, findings)
    folder = Path(images_dir) if images_dir else next(
        (r.images_dir for r in runs if r.images_dir), None)
    logs = {
        run.name: read_training_log(run.path) if run.path.is_dir() else
        TrainingLog() for run in runs
    }
    report = build(
        [Entry(r.name, m.name, r.predictions, _about(r))
         for m in methods for r in m.runs],
        objects, base.name, settings, blame, folder, progress)
    for method, line in zip(methods, report['methods']):
        line.update(
            encodings=method.encodings,
            epochs=method.runs[0].epochs,
            config=method.runs[0].config,
            facts=_facts(method, logs, speed))
    findings += other_numbers(runs, report)
    report['same_work'] = dict(
        findings=[asdict(f) for f in findings],
        comparable=not any(f.level == 'error' for f in findings),
        known=None not in blame.values(),
        attributable=blame)
    report['curves'] = _curves(methods, base, logs, report['iou_types'][0])
    for results in report['results'].values():
        results['where']['evaluations'] = _evaluations(
            methods, results['methods'], objects.image_sizes)
    report['published'] = _published(runs) if published else []
    return report


def _about(run: Run) -> Dict[str, Any]:
    return dict(
        path=str(run.path),
        config=run.config,
        seed=run.seed,
        epochs=run.epochs,
        checkpoint=run.checkpoint,
        checkpoint_kind=run.checkpoint_kind,
        load_from=run.load_from,
        metrics={k: v for k, v in run.metrics.items()
                 if isinstance(v, str) or isinstance(v, (int, float))
                 and math.isfinite(v)},
        versions={**run.train_versions, **run.versions})


def _facts(method: Method, logs: Mapping[str, TrainingLog],
           speed: bool) -> Dict[str, Any]:
    """Of the table: the first run's model, the logs of all."""
    own = [logs[run.name] for run in method.runs]
    out: Dict[str, Any] = {
        name: _middle([getattr(log, key) for log in own])
        for name, key in dict(seconds_per_iteration='seconds_per_iteration',
                              memory_mb='memory').items()
    }
    cfg = method.runs[0].cfg or method.runs[0].train_cfg
    if cfg is None or not isinstance(cfg.get('model'), Mapping):
        return out
    facts = model_facts(cfg)
    out.update(
        parameters=facts.parameters,
        encoding_parameters=facts.encoding_parameters,
        gflops=facts.gflops,
        gflops_note=facts.why or 'of one image of {}x{}'.format(*facts.size))
    if speed:
        device = 'cuda' if torch.cuda.is_available() else 'cpu'
        found = images_per_second(cfg, device, image_size(cfg), 1)
        out['images_per_second'] = dict(
            value=found.images_per_second,
            device=found.device,
            size='{}x{}'.format(*found.size),
            batch=found.batch,
            note=found.why)
    return out


def _middle(values: Sequence[Optional[float]]) -> Optional[float]:
    known = [v for v in values if v is not None]
    return median(known) if known else None


def _all_reach(epochs: Sequence[Optional[int]]) -> Optional[float]:
    """The median; None if a run never does."""
    return None if None in epochs else median(epochs)


def _curves(methods: Sequence[Method], base: Method,
            logs: Mapping[str, TrainingLog], kind: str) -> Dict[str, Any]:
    """Loss and AP of all runs; when methods reach the AP that the baseline
    ends its best run with, but for a twentieth."""
    runs = {
        name: dict(
            loss=[[p.epoch if p.epoch is not None else p.step, p.loss]
                  for p in log.losses],
            ap=[[v.epoch if v.epoch is not None else v.step,
                 100 * v.ap(kind)] for v in log.validations
                if v.ap(kind) is not None])
        for name, log in logs.items()
    }
    by_epoch = all(p.epoch is not None for log in logs.values()
                   for p in log.losses)
    out = dict(runs=runs, x='epoch' if by_epoch else 'iteration')
    best = [ap for run in base.runs for _, ap in runs[run.name]['ap']]
    if best and by_epoch:
        target = 0.95 * max(best)
        out['epochs_to_reach'] = dict(
            ap=target,
            methods={
                m.name: _all_reach([logs[r.name].epochs_to_reach(
                    target / 100, kind) for r in m.runs])
                for m in methods
            })
    return out


def _evaluations(methods: Sequence[Method], results: Mapping[str, Any],
                 sizes: np.ndarray) -> List[Dict[str, Any]]:
    """Methods that are one training, tested in several ways."""
    trainings: Dict[str, List[Method]] = {}
    for method in methods:
        run = method.runs[0]
        if run.cfg is not None and run.checkpoint:
            key = json.dumps(
                [run.checkpoint, run.cfg.get('model', {}).to_dict()],
                default=str)
            trainings.setdefault(key, []).append(method)
    lines = []
    for own in trainings.values():
        if len(own) < 2:
            continue
        lines += [_evaluation(m, results[m.name], sizes) for m in own]
    return lines


def _evaluation(method: Method, result: Mapping[str, Any],
                sizes: np.ndarray) -> Dict[str, Any]:
    cfg = method.runs[0].cfg
    scale = next((step.get('scale') for step in pipeline_of(cfg)
                  if str(step.get('type')).endswith('Resize')), None)
    batch = setting(cfg, 'test_dataloader', 'batch_size') or 1
    padding = None
    if isinstance(scale, (list, tuple)) and np.isfinite(sizes).all():
        divisor = setting(cfg, 'model', 'data_preprocessor',
                          'pad_size_divisor') or 1
        padding = share_of_padding(sizes, scale, batch, divisor)
    number = result['numbers']['AP']
    return dict(
        method=method.name,
        test_scale='x'.join(map(str, scale)) if isinstance(
            scale, (list, tuple)) else 'as they are',
        batch_size=batch,
        padding=padding,
        AP=None if number is None else number['value'])


def _published(runs: Sequence[Run]) -> List[Dict[str, Any]]:
    """Rows of the runs' detectors; all, if papers have none of these."""
    types = [str(setting(r.cfg, 'model', 'type')) for r in runs]
    names = {t.rpartition('.')[2].replace('DeformableDETR', 'Deformable DETR')
             for t in types}
    own = [row for row in ROWS
           if any(f'{row.method} '.startswith(f'{name} ') for name in names)]
    return [_published_row(row) for row in own or ROWS]


def _published_row(row: PublishedRow) -> Dict[str, Any]:
    source, _, url = row.source.partition(', ')
    return dict(
        method=row.method, encoding=row.encoding, epochs=row.epochs,
        AP=row.ap, AP50=row.ap50, AP75=row.ap75, APS=row.ap_small,
        APM=row.ap_medium, APL=row.ap_large, parameters=row.parameters,
        gflops=row.gflops, source=source, url=url)
