"""Train a detector, with the flags of MMDetection's own tool."""
from argparse import Namespace

import mmpe  # noqa: F401  first: it makes mmcv without ops importable
from mmengine.config import Config

from mmpe.engine.checkpoint_hook import save_whole_checkpoints
from mmpe.engine.command_line import (UsageError, load_config, make_parser,
                                      run)
from mmpe.engine.exact_resume import make_resumable
from mmpe.engine.precision import enable_amp
from mmpe.engine.resume import resume
from mmpe.engine.runner import build_runner
from mmpe.engine.whole_files import disk_errors


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


def main() -> None:
    args = parse_args()
    cfg = load_config(args)
    if args.amp or cfg.get('optim_wrapper', {}).get(
            'type') == 'AmpOptimWrapper':
        enable_amp(cfg)
    if args.auto_scale_lr:
        scale_lr(cfg)
    if args.resume or cfg.get('resume'):
        resume(cfg, args.resume or cfg.get('load_from') or 'auto')
    make_resumable(cfg)
    save_whole_checkpoints(cfg)
    with disk_errors(cfg.work_dir):
        build_runner(cfg, 'train', 'val').train()


if __name__ == '__main__':
    run(main)
