"""Time and memory of the report's statistics, beside faster-coco-eval's.

    python tools/generate_coco.py DIR
    python tools/benchmark_report.py DIR

In turn in one process, medians. faster-coco-eval is measured if it is
installed (pip install faster-coco-eval), pycocotools with --pycocotools.
"""
import contextlib
import io
import resource
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from statistics import median

import mmpe  # noqa: F401  first: it makes mmcv without ops importable
import numpy as np

from mmpe.evaluation.average_precision import average_precisions
from mmpe.evaluation.matching import match
from mmpe.evaluation.detections import read_detections
from mmpe.evaluation.objects import read_objects
from mmpe.evaluation.report import Entry, Settings, build


def parse_args() -> Namespace:
    parser = ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('folder', type=Path, help='of generate_coco.py')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--resamples', type=int, default=1000)
    parser.add_argument('--pycocotools', action='store_true')
    return parser.parse_args()


def of_mmpe(folder: Path):
    """Reads files; returns what evaluates them."""
    objects = read_objects(str(folder / 'annotations.json'))
    found = read_detections(str(folder / 'a.bbox.json'), objects)
    return lambda: average_precisions(match(objects, found)).mean('AP')[0]


def of_library(coco, evaluator):
    """The same of a library with pycocotools' classes."""

    def read(folder: Path):
        truth = coco(str(folder / 'annotations.json'))
        found = truth.loadRes(str(folder / 'a.bbox.json'))

        def evaluate():
            result = evaluator(truth, found, 'bbox')
            result.evaluate()
            result.accumulate()
            result.summarize()
            return result.stats[0]

        return evaluate

    return read


def sides(args: Namespace) -> dict:
    """What is compared, by name."""
    out = dict(mmpe=of_mmpe)
    with contextlib.suppress(ImportError):
        from faster_coco_eval import COCO, COCOeval_faster
        out['faster-coco-eval'] = of_library(COCO, COCOeval_faster)
    if args.pycocotools:
        from pycocotools.coco import COCO as Slow
        from pycocotools.cocoeval import COCOeval
        out['pycocotools'] = of_library(Slow, COCOeval)
    return out


def main() -> None:
    args = parse_args()
    times, values = {}, {}
    for _ in range(args.rounds):
        for name, read in sides(args).items():
            with contextlib.redirect_stdout(io.StringIO()):
                start = time.perf_counter()
                evaluate = read(args.folder)
                middle = time.perf_counter()
                values[name] = evaluate()
            times.setdefault(name, []).append(
                (middle - start, time.perf_counter() - middle))
    for name, pairs in times.items():
        reading, evaluating = np.median(pairs, axis=0)
        ratio = median(own[1] / other[1] for own, other in zip(
            times['mmpe'], pairs))
        print(f'{name:<17} AP {values[name]:.6f}   reading {reading:5.2f} s   '
              f'evaluating {evaluating:6.2f} s   mmpe takes {ratio:.2f} of it')
    entries = [
        Entry(name, name, dict(bbox=args.folder / f'{name}.bbox.json'), {})
        for name in 'ab'
    ]
    start = time.perf_counter()
    build(entries, read_objects(str(args.folder / 'annotations.json')), None,
          Settings(args.resamples), {})
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f'two runs, {args.resamples} resamples: '
          f'{time.perf_counter() - start:.0f} s; at most {memory:.1f} GiB of '
          'memory in all')


if __name__ == '__main__':
    main()
