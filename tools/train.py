"""Train a detector, with the flags of MMDetection's own tool."""
from argparse import Namespace

import mmpe  # noqa: F401  first: it makes mmcv without ops importable
from mmengine.config import Config
from mmengine.runner import find_latest_checkpoint

from mmpe.engine.command_line import (UsageError, check_checkpoint,
                                      load_config, make_parser, run)
from mmpe.engine.precision import enable_amp
from mmpe.engine.runner import build_runner


def parse_args() -> Namespace:
    parser = make_parser('Train a detector')
    parser.add_argument(
        '--amp',
        action='store_true',
        help='mixed precision; bfloat16 where there is no GPU')
    parser.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate with the total batch size, from '
        'auto_scale_lr.base_batch_size in the config')
    parser.add_argument(
        '--resume',
        nargs='?',
        const='auto',
        metavar='CHECKPOINT',
        help='go on from this checkpoint or, without a value, from the last '
        'one in the work dir, if there is one')
    return parser.parse_args()


def scale_lr(cfg: Config) -> None:
    if 'base_batch_size' not in cfg.get('auto_scale_lr', {}):
        raise UsageError('--auto-scale-lr needs '
                         'auto_scale_lr=dict(base_batch_size=...) in the '
                         'config')
    cfg.auto_scale_lr.enable = True


def resume(cfg: Config, checkpoint: str) -> None:
    if checkpoint != 'auto':
        cfg.resume, cfg.load_from = True, checkpoint
        return
    # A job that is always started with --resume has nothing to resume the
    # first time; then load_from stays, and it begins from there.
    last = find_latest_checkpoint(cfg.work_dir)
    if last:
        check_checkpoint(last)
        cfg.resume, cfg.load_from = True, None


def main() -> None:
    args = parse_args()
    cfg = load_config(args)
    if args.amp or cfg.get('optim_wrapper', {}).get(
            'type') == 'AmpOptimWrapper':
        enable_amp(cfg)
    if args.auto_scale_lr:
        scale_lr(cfg)
    if args.resume:
        resume(cfg, args.resume)
    build_runner(cfg).train()


if __name__ == '__main__':
    run(main)
