"""Setting up a run: what ``tools/train.py`` and ``tools/test.py`` share."""
# The only module that is of use outside the tools, and without MMDetection.
from .checkpoint_classes import allow_checkpoint_classes

__all__ = ['allow_checkpoint_classes']
