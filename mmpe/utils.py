"""What MMEngine asks of a package whose models it builds by name."""
from mmengine.registry import init_default_scope as _init_default_scope

from mmpe.registry import MODELS


def register_all_modules(init_default_scope: bool = True) -> None:
    """Register mmpe's modules, as functions of this name do in MMDetection
    and the others.

    Args:
        init_default_scope (bool): Whether types without a prefix are to be
            looked for in mmpe, then in MMDetection. Defaults to True.
    """
    MODELS.import_from_location()
    if init_default_scope:
        _init_default_scope(MODELS.scope)
