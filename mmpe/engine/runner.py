"""From a config to a runner that can start."""
from mmdet.utils import setup_cache_size_limit_of_dynamo
from mmengine.config import Config
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from .check_config import config_errors
from .checkpoint_classes import allow_checkpoint_classes
from .command_line import check_checkpoint
from .processes import set_up_processes


def build_runner(cfg: Config) -> Runner:
    """Join the processes of the run and build its runner.

    Args:
        cfg (Config): The whole config of a run, with ``launcher`` and
            ``work_dir``.

    Raises:
        UsageError: If the config cannot be built, its ``load_from`` does not
            exist, or the processes don't fit the launcher or the machine.
    """
    check_checkpoint(cfg.get('load_from'))
    allow_checkpoint_classes()
    setup_cache_size_limit_of_dynamo()
    set_up_processes(cfg)
    with config_errors(cfg):
        if 'runner_type' in cfg:
            return RUNNERS.build(cfg)
        return Runner.from_cfg(cfg)
