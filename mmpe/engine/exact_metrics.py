"""COCO's numbers without MMDetection's rounding to three digits, and zeros
instead of nothing for a model that detects nothing."""
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List

from mmdet.evaluation.metrics import CocoMetric, coco_metric

# Where the numbers that CocoMetric reports lie in COCOeval.stats.
_STATS = ('mAP', 'mAP_50', 'mAP_75', 'mAP_s', 'mAP_m', 'mAP_l', 'AR@100',
          'AR@300', 'AR@1000', 'AR_s@1000', 'AR_m@1000', 'AR_l@1000')


def report_exactly(metric: CocoMetric) -> None:
    """Make ``metric`` report what COCO's evaluation says, digit for digit.

    Without any detection it reports precision 0 where there are objects (and
    COCO's -1 where there are none); by itself it would report nothing.

    Note:
        Precision per class stays rounded: it is computed by CocoMetric
        itself.
    """
    compute = metric.compute_metrics

    def compute_metrics(results: list) -> Dict[str, float]:
        with _watched_evaluations() as evaluations:
            reported = compute(results)
        for evaluation in evaluations:
            for name, value in _numbers(evaluation).items():
                if name in reported:
                    reported[name] = value
        return reported

    metric.compute_metrics = compute_metrics


def _numbers(evaluation) -> Dict[str, float]:
    """All numbers of a COCOeval, named as CocoMetric names them."""
    is_proposal = not evaluation.params.useCats
    prefix = '' if is_proposal else f'{evaluation.params.iouType}_'
    return {
        prefix + name: float(value)
        for name, value in zip(_STATS, evaluation.stats)
    }


@contextmanager
def _watched_evaluations() -> Iterator[List[Any]]:
    """The COCOeval objects that CocoMetric makes inside the context.

    It makes them where no argument or attribute reaches, so for that time the
    names that it uses mean classes that remember their objects.
    """
    done: List[Any] = []

    def remembering(base: type) -> type:

        class Evaluation(base):

            def summarize(self):
                super().summarize()
                done.append(self)

        return Evaluation

    with _replaced(
            coco_metric,
            COCOeval=remembering(coco_metric.COCOeval),
            COCOevalMP=remembering(coco_metric.COCOevalMP)), _replaced(
                coco_metric.COCO,
                loadRes=_loading_nothing_too(coco_metric.COCO.loadRes)):
        yield done


def _loading_nothing_too(load: Callable) -> Callable:
    """``COCO.loadRes`` that doesn't fail on an empty list of results."""

    def load_results(annotations, results):
        if not isinstance(results, list) or results:
            return load(annotations, results)
        empty = type(annotations)()
        empty.dataset = {**annotations.dataset, 'annotations': []}
        empty.createIndex()
        return empty

    return load_results


@contextmanager
def _replaced(owner: Any, **attributes) -> Iterator[None]:
    kept = {name: getattr(owner, name) for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(owner, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(owner, name, value)
