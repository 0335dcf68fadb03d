"""From a config to a runner that can start."""
import logging

import mmcv
import mmdet
from mmdet.utils import setup_cache_size_limit_of_dynamo
from mmengine.config import Config
from mmengine.logging import print_log
from mmengine.registry import RUNNERS
from mmengine.runner import Runner
from torch import nn

import mmpe
from .check_checkpoint import check_weights, read_checkpoint
from .check_config import config_errors
from .check_data import check_data
from .checkpoint_classes import allow_checkpoint_classes
from .processes import set_up_processes


OURS = dict(
    DetDataPreprocessor='mmpe.DetDataPreprocessor',
    SegDataPreProcessor='mmpe.SegDataPreProcessor')
"""What to write for data preprocessors that don't tell what is padding."""


def warn_of_padding(model: nn.Module) -> None:
    """Warn of a backbone or a neck that padding gets into."""
    model = getattr(model, 'module', model)
    kind = type(getattr(model, 'data_preprocessor', None))
    known = kind.__module__.startswith('mmpe.')
    for module in model.modules():
        if (getattr(module, 'reads_batch_shapes', False) and not known
                and kind.__name__ in OURS):
            print_log(
                f'{type(module).__name__} takes the padding of a batch for '
                'valid: data_preprocessor=dict(type='
                f"'{OURS[kind.__name__]}') would tell it",
                logger='current',
                level=logging.WARNING)
            return


def _log_versions(runner: Runner) -> None:
    """Of the packages that MMEngine's report of the environment leaves out; a
    report on runs compares them."""
    versions = dict(MMDetection=mmdet.__version__, MMCV=mmcv.__version__,
                    mmpe=mmpe.__version__)
    lines = [f'\n    {name}: {version}' for name, version in versions.items()]
    runner.logger.info('Versions:' + ''.join(lines))


def build_runner(cfg: Config, *phases: str) -> Runner:
    """Join the processes of the run, build its runner and check what it
    starts from.

    Args:
        cfg (Config): The whole config of a run, with ``launcher`` and
            ``work_dir``.
        *phases (str): ``'train'``, ``'val'``, ``'test'``: what will be run.
            Its data are built and checked too.

    Raises:
        UsageError: If the config cannot be built, its data or its checkpoint
            cannot be used, or the processes don't fit the launcher or the
            machine.
    """
    path = cfg.get('load_from')
    # mmengine also loads https://, open-mmlab://, s3:// and so on.
    if path and '://' not in path:
        read_checkpoint(path)  # before the work dir gets this config
    allow_checkpoint_classes()
    setup_cache_size_limit_of_dynamo()
    set_up_processes(cfg)
    with config_errors(cfg):
        runner = (RUNNERS.build(cfg) if 'runner_type' in cfg else
                  Runner.from_cfg(cfg))
    _log_versions(runner)
    warn_of_padding(runner.model)
    check_weights(runner, complete='test' in phases)
    check_data(runner, *phases)
    return runner
