"""What a test leaves in its work dir.

- ``predictions.bbox.json`` and, for models with masks,
  ``predictions.segm.json``, in COCO's result format;
- ``metrics.json``, one flat object: each metric under MMDetection's name for
  it (COCO's not rounded), and ``config``, ``checkpoint``, ``num_images`` and
  ``num_detections``. -1 is COCO's number where the annotations have no such
  objects, null stands for a number that is not finite.
"""
import json
import logging
import math
import os
import shutil
from pathlib import Path
from typing import Any, Dict

import numpy as np
from mmdet.evaluation import CocoMetric
from mmengine.dist import master_only
from mmengine.logging import print_log
from mmengine.runner import Runner
from torch import Tensor

from .exact_metrics import report_exactly
from .whole_files import write_whole


class ResultFiles:
    """Keeps the results of a test that is about to run.

    The predictions are those of the evaluator's first COCO metric. Where that
    has an ``outfile_prefix`` they are written there too; nothing else of the
    user's evaluator is touched.

    Args:
        runner (Runner): Its ``test`` has not been called yet.
        config (str): Path of the config.
        checkpoint (str): Path or address of what is tested.
    """

    def __init__(self, runner: Runner, config: str, checkpoint: str) -> None:
        self.work_dir = Path(runner.work_dir)
        self.about: Dict[str, Any] = dict(
            config=Path(config).stem,
            checkpoint=checkpoint,
            num_images=len(runner.test_dataloader.dataset))
        coco_metrics = [
            metric for metric in runner.test_evaluator.metrics
            if isinstance(metric, CocoMetric)
        ]
        for metric in coco_metrics:
            report_exactly(metric)
        self.source = None
        if coco_metrics:
            self._prepare(coco_metrics[0], Path(runner.log_dir))

    def _prepare(self, metric: CocoMetric, log_dir: Path) -> None:
        self.keep_source = metric.outfile_prefix is not None
        if not self.keep_source:
            # Not the work dir yet: a test that is stopped half-way shall not
            # leave its predictions beside the metrics of another.
            metric.outfile_prefix = str(log_dir / 'predictions')
        self.source = metric.outfile_prefix
        compute = metric.compute_metrics

        def compute_metrics(results: list) -> Dict[str, float]:
            self.about['num_detections'] = sum(
                len(prediction['labels']) for _, prediction in results)
            return compute(results)

        metric.compute_metrics = compute_metrics

    @master_only
    def save(self, metrics: Dict[str, Any]) -> None:
        """Put the results in the work dir.

        Args:
            metrics (dict): What ``runner.test()`` returned.
        """
        # First the old metrics go: they don't describe the new predictions.
        metrics_file = self.work_dir / 'metrics.json'
        metrics_file.unlink(missing_ok=True)
        if self.source is not None:
            for kind in ('bbox', 'segm'):
                self._keep_predictions(kind)
        if self.about.get('num_detections') == 0:
            _log('The model detected nothing in any image.', logging.WARNING)
        if not metrics:
            _log('The evaluator returned no metrics (with format_only it '
                 'never does), so there is no metrics.json.')
            return
        text = json.dumps(_plain({**metrics, **self.about}), indent=2)
        write_whole(metrics_file, lambda part: part.write_text(text + '\n'))
        _log(f'Metrics are in {metrics_file}')

    def _keep_predictions(self, kind: str) -> None:
        source = Path(f'{self.source}.{kind}.json')
        target = self.work_dir / f'predictions.{kind}.json'
        if not source.is_file():
            # No masks, or a prefix on some storage. Either way an older file
            # doesn't belong to the new results.
            target.unlink(missing_ok=True)
            return
        if not self.keep_source:
            os.replace(source, target)
        elif source.resolve() != target.resolve():
            write_whole(target, lambda part: shutil.copyfile(source, part))
        _log(f'Predictions are in {target}')


def _plain(value: Any) -> Any:
    """``value`` as JSON knows it: numbers, text, lists and objects."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic, Tensor)):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _log(text: str, level: int = logging.INFO) -> None:
    print_log(text, logger='current', level=level)
