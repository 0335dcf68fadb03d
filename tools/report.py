"""Compare runs by COCO mAP: did a swap help, and how sure is that?

A RUN is a work dir as train.py and test.py leave it, or
NAME=predictions.bbox.json with --ann. Runs whose configs differ in the seed
alone are one method.
"""
from argparse import Namespace
from contextlib import contextmanager
from pathlib import Path

import mmpe  # noqa: F401  first: it makes mmcv without ops importable
from mmengine.logging import MMLogger
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from mmpe.engine.command_line import Parser, run
from mmpe.engine.usage_error import UsageError
from mmpe.engine.whole_files import disk_errors
from mmpe.evaluation.assemble import make_report
from mmpe.evaluation.pages import summary, write_report
from mmpe.evaluation.report import Settings


def parse_args() -> Namespace:
    parser = Parser(description=__doc__.partition('\n')[0])
    parser.add_argument(
        'runs',
        nargs='+',
        metavar='RUN',
        help='work dir, or NAME=predictions.bbox.json')
    parser.add_argument(
        '--out',
        required=True,
        metavar='DIR',
        help='folder for report.html, .md, .tex and .json')
    parser.add_argument(
        '--baseline',
        metavar='NAME',
        help='method or run that others are compared with; the first')
    parser.add_argument(
        '--ann',
        metavar='FILE',
        help="annotation file, rather than the configs'")
    parser.add_argument(
        '--images',
        metavar='DIR',
        help='where the images are, rather than where the configs say')
    parser.add_argument(
        '--resamples', type=int, default=1000, help='of the images; 1000')
    parser.add_argument('--seed', type=int, default=0, help='of these; 0')
    parser.add_argument(
        '--margin',
        type=float,
        default=0.3,
        help='differences in AP up to this are as good as none; 0.3')
    parser.add_argument(
        '--published',
        action='store_true',
        help="show rows of the papers' tables beside")
    parser.add_argument(
        '--speed',
        action='store_true',
        help='measure images per second, on the GPU if there is one')
    args = parser.parse_args()
    if args.resamples < 100:
        raise UsageError('--resamples must be 100 or more, got '
                         f'{args.resamples}')
    if args.seed < 0:
        raise UsageError(f'--seed must be 0 or more, got {args.seed}')
    if not 0 < args.margin < 100:
        raise UsageError(f'--margin must be above 0 AP, got {args.margin}')
    return args


@contextmanager
def progress_bars(resamples: int):
    """A bar for each run, on a terminal; yields what makes one."""
    with Progress(console=Console(stderr=True), transient=True) as bars:

        def start(what):
            task = bars.add_task(escape(what), total=resamples)
            return lambda done: bars.advance(task, done)

        yield start


def main() -> None:
    args = parse_args()
    MMLogger.get_instance('mmengine', log_level='WARNING')
    settings = Settings(args.resamples, args.seed, args.margin)
    with disk_errors(args.out):
        with progress_bars(args.resamples) as progress:
            report = make_report(args.runs, settings, args.ann, args.baseline,
                                 args.images, args.published, args.speed,
                                 progress)
        paths = write_report(report, Path(args.out))
    Console().print(summary(report))
    print(f'Report: {paths["html"]}')


if __name__ == '__main__':
    run(main)
