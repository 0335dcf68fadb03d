"""Test and evaluate a detector, with the flags of MMDetection's own tool.

The work dir then holds the predictions in COCO's format and the metrics; see
mmpe/engine/results.py.
"""
from argparse import Namespace

import mmpe  # noqa: F401  first: it makes mmcv without ops importable
from mmdet.engine.hooks.utils import trigger_visualization_hook
from mmdet.evaluation import DumpDetResults

from mmpe.engine.command_line import (UsageError, load_config, make_parser,
                                      run)
from mmpe.engine.results import ResultFiles
from mmpe.engine.runner import build_runner
from mmpe.engine.test_time_augmentation import enable_tta


def parse_args() -> Namespace:
    parser = make_parser('Test and evaluate a detector')
    parser.add_argument('checkpoint', help='checkpoint file or address')
    parser.add_argument(
        '--out',
        metavar='FILE.pkl',
        help='also dump the predictions for the offline tools of MMDetection')
    parser.add_argument(
        '--show', action='store_true', help='show pictures of predictions')
    parser.add_argument(
        '--show-dir',
        help='save pictures of predictions in this folder under '
        'work_dir/timestamp')
    parser.add_argument(
        '--wait-time', type=float, default=2, help='seconds between pictures')
    parser.add_argument(
        '--tta', action='store_true', help='test-time augmentation')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    if args.out and not args.out.endswith(('.pkl', '.pickle')):
        raise UsageError(f'--out takes a .pkl file, got: {args.out}')
    cfg = load_config(args)
    # The config that a resumed training left in its work dir resumes.
    cfg.load_from, cfg.resume = args.checkpoint, False
    if args.show or args.show_dir:
        trigger_visualization_hook(cfg, args)
    if args.tta:
        enable_tta(cfg)

    runner = build_runner(cfg, 'test')
    files = ResultFiles(runner, args.config, args.checkpoint)
    if args.out:
        runner.test_evaluator.metrics.append(DumpDetResults(args.out))
    files.save(runner.test())


if __name__ == '__main__':
    run(main)
