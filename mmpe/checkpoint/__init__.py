"""Importing checkpoints of other code bases: a table of rules for each."""
from mmpe import environment

environment.require_hosts()

# isort: split
from .families import NAMES as FAMILIES  # noqa: E402
from .importing import build_model, import_checkpoint, save  # noqa: E402
from .report import Report  # noqa: E402
from .sources import Source, find_source  # noqa: E402

__all__ = [
    'FAMILIES', 'Report', 'Source', 'build_model', 'find_source',
    'import_checkpoint', 'save'
]
