"""Import a checkpoint of a zoo or of a paper into a model of mmpe.

OUT is a checkpoint that load_from, test.py and init_detector take.
"""
import json
import sys
from argparse import Namespace
from contextlib import redirect_stdout
from pathlib import Path

import mmpe  # noqa: F401  first: it makes mmcv without ops importable
from mmengine.logging import MMLogger

from mmpe.checkpoint import (FAMILIES, build_model, find_source,
                             import_checkpoint, save)
from mmpe.checkpoint.verify import compare_on_image
from mmpe.engine.check_config import merge_options, read_config
from mmpe.engine.command_line import Options, Parser, run
from mmpe.engine.usage_error import UsageError
from mmpe.engine.whole_files import part_of


def grid(text: str) -> tuple:
    """``HxW``."""
    height, width = map(int, text.split('x'))
    if min(height, width) < 1:
        raise ValueError(text)
    return height, width


def parse_args() -> Namespace:
    parser = Parser(description=__doc__.partition('\n')[0])
    parser.add_argument(
        'config', help='config file of the model, or mmpe::detr/...')
    parser.add_argument(
        'checkpoint',
        metavar='SOURCE',
        help='a file, an address, or the name of a model of the zoo such as '
        'detr_r50_8xb2-150e_coco')
    parser.add_argument('out', metavar='OUT', help='what is written')
    parser.add_argument(
        '--source',
        metavar='FAMILY',
        help='what the checkpoint is of, if its names mislead: '
        f'{", ".join(FAMILIES)}')
    parser.add_argument(
        '--source-grid',
        type=grid,
        metavar='HxW',
        help="cells of the checkpoint's learned table, if that isn't square")
    parser.add_argument(
        '--strict',
        action='store_true',
        help='fail if anything outside the position encodings does not match')
    parser.add_argument(
        '--check',
        metavar='IMAGE',
        help='compare the outputs on an image with those of the source; fail '
        'if an import that starts as its function does not')
    parser.add_argument(
        '--json',
        action='store_true',
        help='print the whole account as JSON')
    parser.add_argument(
        '--force', action='store_true', help='overwrite OUT')
    parser.add_argument(
        '--trust',
        action='store_true',
        help='load a file that holds more than data, which can run any code: '
        'only if you know who made it')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=Options,
        metavar='KEY=VALUE',
        help='settings that replace those of the config')
    return parser.parse_args()


def main() -> None:
    args = parse_args()
    out = Path(args.out)
    if out.exists() and not args.force:
        raise UsageError(f'{out} is there already; --force overwrites it')
    if not out.parent.is_dir():
        raise UsageError(f'no such folder: {out.parent}')
    MMLogger.get_instance('mmengine', log_level='WARNING')
    # With --json nothing but that goes to the standard output.
    with redirect_stdout(sys.stderr if args.json else sys.stdout):
        cfg = read_config(args.config)
        if args.cfg_options:
            merge_options(cfg, args.cfg_options)
        source = find_source(args.checkpoint)
        for path in out, part_of(out):  # the latter is written first
            if path.exists() and path.samefile(source.path):
                raise UsageError(f'{path} is the checkpoint that is imported')
        model = build_model(cfg)
        checkpoint, report, origin = import_checkpoint(
            cfg, source, model, args.source, args.source_grid, args.trust)
        if args.check:
            report.check = compare_on_image(cfg, model, origin, report,
                                            args.check)
    print(json.dumps(report.as_dict(), indent=2) if args.json else
          report.as_text())
    if args.strict and report.missed:
        raise UsageError(report.refusal)
    if args.check and report.is_same_function and not report.check['agrees']:
        raise UsageError('--check: the import should start as the function of '
                         f'its source, but {report.check["says"]}')
    save(checkpoint, out.resolve())
    if not args.json:
        print(f'Wrote {out}')


if __name__ == '__main__':
    run(main)
