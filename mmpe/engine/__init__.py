"""Setting up a run: what ``tools/train.py`` and ``tools/test.py`` share."""
from .checkpoint_classes import allow_checkpoint_classes

# The other modules import MMDetection; this one works without.
__all__ = ['allow_checkpoint_classes']
