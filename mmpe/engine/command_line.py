"""The command line that ``tools/train.py`` and ``tools/test.py`` share."""
import os
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Callable, NoReturn

from mmengine.config import Config, DictAction
from mmengine.registry import init_default_scope
from torch.distributed.elastic.multiprocessing.errors import record

from .check_config import merge_options, read_config
from .processes import leave_processes
from .usage_error import UsageError


def run(main: Callable[[], None]) -> None:
    """Call ``main`` as the whole of a program.

    A :class:`UsageError` ends it with one line and exit status 2. Under
    torchrun, an exception is also handed to the parent, which closes its
    report with the first one.
    """

    def main_in_short() -> None:
        try:
            main()
            leave_processes()
        except UsageError as error:
            # torchrun's report shows the whole traceback of an error.
            raise UsageError(str(error)) from None

    try:
        record(main_in_short)()
    except UsageError as error:
        print(f'{Path(sys.argv[0]).name}: error: {error}', file=sys.stderr)
        sys.exit(2)


class Parser(ArgumentParser):
    """What is typed wrong raises a :class:`UsageError`."""

    def error(self, message: str) -> NoReturn:
        # By itself argparse would exit, of which torchrun learns no reason.
        raise UsageError(message)


class Options(DictAction):
    """``key=value`` pairs; a word that is no pair is a usage error."""

    def __call__(self, parser, namespace, values, option_string=None):
        for word in values:
            if '=' not in word:
                parser.error(f'{option_string} takes key=value, got: {word}')
        try:
            super().__call__(parser, namespace, values, option_string)
        except (RecursionError, AssertionError):  # of a dict, or brackets
            parser.error(f'{option_string} cannot read {" ".join(values)}: it '
                         'takes numbers, words and lists such as "[a,b]", '
                         'but no dicts')


def make_parser(description: str) -> ArgumentParser:
    """A parser with the arguments of MMDetection's tools that train and test
    share. What is typed wrong raises a :class:`UsageError`."""
    parser = Parser(description=description)
    parser.add_argument('config', help='config file')
    parser.add_argument(
        '--work-dir',
        help="folder for logs and results; the config's work_dir if not "
        'given, and work_dirs/<name of the config> if that has none')
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action=Options,
        metavar='KEY=VALUE',
        help='settings that replace those of the config, such as '
        'optim_wrapper.optimizer.lr=1e-4 or '
        'model.positional_encoding.0.temperature=20. Lists are written '
        'key="[a,b]", without white space')
    parser.add_argument(
        '--launcher',
        choices=['none', 'pytorch', 'slurm', 'mpi'],
        default='none',
        help='what started the processes')
    # Launchers older than torchrun pass the rank as an argument: with an
    # underscore before torch 2, with a hyphen since.
    parser.add_argument(
        '--local_rank', '--local-rank', type=int, default=0)
    return parser


def load_config(args: Namespace) -> Config:
    """Read the config of the command line and apply what was typed with it.

    Args:
        args (Namespace): As :func:`make_parser` has them.

    Raises:
        UsageError: If that cannot be read, or an option does not fit it.
    """
    os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
    cfg = read_config(args.config)
    cfg.launcher = args.launcher
    if args.cfg_options:
        merge_options(cfg, args.cfg_options)
    if args.work_dir:
        cfg.work_dir = args.work_dir
    elif not cfg.get('work_dir'):
        cfg.work_dir = os.path.join('work_dirs', Path(args.config).stem)
    # Types without a prefix, such as PackDetInputs, are MMDetection's.
    if not cfg.get('default_scope'):
        cfg.default_scope = 'mmdet'
    init_default_scope(cfg.default_scope)
    return cfg
