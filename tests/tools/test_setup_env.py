"""The set-up's two stacks. That it can install them shows when it is run."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from mmpe import environment

TOOLS = Path(__file__).parents[2] / 'tools'


@pytest.mark.parametrize('tool', ['setup_env.sh', 'run_tests.sh'])
def test_unknown_stack_is_one_line(tool):
    done = subprocess.run(['bash', TOOLS / tool],
                          env=dict(os.environ, MMPE_STACK='open'),
                          capture_output=True,
                          text=True)
    assert done.returncode == 1
    assert done.stdout + done.stderr == (
        '[setup] MMPE_STACK must be stock or onedl, got: open\n')


@pytest.mark.parametrize('stack', [environment.STOCK, environment.ONEDL],
                         ids=['stock', 'onedl'])
def test_versions_are_those_that_an_import_error_names(stack):
    script = (TOOLS / 'setup_env.sh').read_text()
    pinned = re.findall(r'[\w-]+==[\d.]+', script)
    for _, _, requirement in stack.values():
        assert requirement.replace('-lite', '') in pinned
