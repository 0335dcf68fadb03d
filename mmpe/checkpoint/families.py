"""All families of checkpoints, and which one a checkpoint is of."""
from typing import Container, Dict, Mapping, Optional, Tuple

from torch import Tensor

from mmpe.engine.usage_error import UsageError
from mmpe.nearest import did_you_mean
from .deformable_detr import DEFORMABLE_DETR
from .detr import DETR, IRPE_DETR
from .family import Family
from .openmmlab import OPENMMLAB
from .twins import TWINS
from .vision_transformer import FAMILIES as VISION_TRANSFORMERS

FAMILIES = (IRPE_DETR, DETR, DEFORMABLE_DETR, TWINS, *VISION_TRANSFORMERS,
            OPENMMLAB)
NAMES = list(dict.fromkeys(family.name for family in FAMILIES))


def recognise(path: str, weights: Mapping[str, Tensor],
              known: Container[str],
              name: Optional[str] = None) -> Tuple[Family, Dict[str, Tensor]]:
    """The family of a checkpoint, from names alone.

    Args:
        path (str): For messages.
        weights (Mapping[str, Tensor]): Its tensors.
        known (Container[str]): Names that the model has.
        name (str, optional): The family that the user says it is of.

    Returns:
        tuple[Family, dict[str, Tensor]]: And the tensors by the names that
        the family gives them.

    Raises:
        UsageError: If it is of none, or not of the one it is said to be of.
    """
    if name is not None and name not in NAMES:
        raise UsageError(f'--source must be one of {", ".join(NAMES)}, got '
                         f'{name!r}.{did_you_mean(name, NAMES)}')
    alone = {k[len('backbone.'):] if k.startswith('backbone.') else k: v
             for k, v in weights.items()}
    for family in FAMILIES:
        own = alone if family.is_backbone else dict(weights)
        if family is OPENMMLAB or name not in (None, family.name):
            continue
        if family.has(own):
            return family, own
    if name in (None, OPENMMLAB.name) and any(k in known for k in weights):
        return OPENMMLAB, dict(weights)
    some = ', '.join(list(weights)[:3])
    if name is not None:
        lacks = next(f for f in FAMILIES if f.name == name).lacks(alone)
        raise UsageError(f'{path} is not of the family {name}: it has no '
                         f'{", ".join(lacks) or "such name"}, but {some}, ...')
    near = [(family.lacks(alone if family.is_backbone else weights), family)
            for family in FAMILIES if family.marks]
    lacks, family = min(near, key=lambda pair: len(pair[0]))
    if len(lacks) == 1 and len(family.marks) > 2:
        raise UsageError(f'{path} would be of the family {family.name}, but '
                         f'has no {", ".join(lacks)}')
    raise UsageError(
        f'{path} is of no family that can be imported ({", ".join(NAMES)}), '
        f'nor has it names of the model of CONFIG: it has {some}, ...')
