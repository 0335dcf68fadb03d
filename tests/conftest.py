"""What all tests share."""
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from mmengine.logging import MMLogger
from mmengine.registry import DefaultScope

import mmpe  # noqa: F401; before MMDetection, which may lack MMCV's ops

sys.path.insert(0, str(Path(__file__).parent))  # the helpers beside this file

# Examples are drawn alike in each run, so that a red test stays red.
settings.register_profile(
    'mmpe', deadline=None, derandomize=True, max_examples=25)
settings.load_profile('mmpe')
MMLogger.get_instance('tests', log_level='WARNING')
# Steps as small as these wait more for a second thread than it helps.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope='module')
def _scope():
    """A scope that one module sets is not that of the next one."""
    with DefaultScope.overwrite_default_scope('mmdet'):
        yield
