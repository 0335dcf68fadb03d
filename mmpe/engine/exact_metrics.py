"""COCO's numbers without MMDetection's rounding to three digits, and zeros
instead of nothing for a model that detects nothing."""
from contextlib import ExitStack, contextmanager
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

    It makes them where no argument or attribute reaches, so for that time
    their classes remember them.
    """
    done: List[Any] = []

    def remembering(summarize: Callable) -> Callable:

        def summarize_and_remember(evaluation):
            summarize(evaluation)
            done.append(evaluation)

        return summarize_and_remember

    with ExitStack() as stack:
        for cls in (coco_metric.COCOeval, coco_metric.COCOevalMP):
            stack.enter_context(_wrapped(cls, 'summarize', remembering))
        stack.enter_context(
            _wrapped(coco_metric.COCO, 'loadRes', _accepting_nothing))
        yield done


def _accepting_nothing(load: Callable) -> Callable:
    """``COCO.loadRes`` that doesn't fail on an empty list of results."""

    def load_results(annotations, results):
        if not isinstance(results, list) or results:
            return load(annotations, results)
        nothing = type(annotations)()
        nothing.dataset = {**annotations.dataset, 'annotations': []}
        nothing.createIndex()
        return nothing

    return load_results


@contextmanager
def _wrapped(cls: type, name: str, wrap: Callable) -> Iterator[None]:
    """Replace a method of ``cls`` inside the context."""
    inherited = name not in vars(cls)
    method = getattr(cls, name)
    setattr(cls, name, wrap(method))
    try:
        yield
    finally:
        if inherited:
            delattr(cls, name)
        else:
            setattr(cls, name, method)
