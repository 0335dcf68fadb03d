"""Checkpoints whose names are the model's own: MMDetection's,
MMSegmentation's and mmpe's."""
from typing import Any, Mapping, Optional

from torch import Tensor

from mmpe import position
from mmpe.engine.config_text import read_config_text
from .detr import SINE
from .family import Family, Origin
from .rules import Rule
from .same_function import lists_of


def unknown(weights: Mapping[str, Tensor]) -> Origin:
    return Origin(unknown='the file holds no config')


OPENMMLAB = Family(
    'openmmlab', 'MMDetection, MMSegmentation or mmpe', marks=[],
    rules=[Rule('{rest}', '{rest}')], origin=unknown)


def model_of(meta: Any) -> Optional[Mapping]:
    """The model in the config that MMEngine left in a checkpoint, which is
    read as data and never run; None if there is none that is understood."""
    text = meta.get('cfg') if isinstance(meta, Mapping) else None
    if not isinstance(text, str):
        return None
    model = read_config_text(text).get('model')
    return model if isinstance(model, Mapping) and _is_plain(model) else None


def _is_plain(value: Any, depth: int = 0) -> bool:
    """Whether keys are text, as those of configs, and lists of encodings are
    lists of dicts."""
    if depth > 40:
        return False
    if isinstance(value, Mapping):
        lists = value.get('positional_encoding', {})
        if not isinstance(lists, Mapping) and not (
                isinstance(lists, (list, tuple))
                and all(isinstance(item, Mapping) for item in lists)):
            return False
        return all(isinstance(k, str) and _is_plain(v, depth + 1)
                   for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return all(_is_plain(item, depth + 1) for item in value)
    return True


def origin_of(model: Optional[Mapping], detector: str) -> Origin:
    """The encodings of a model of MMDetection or mmpe.

    Args:
        model (Mapping, optional): Its config, where the file has it.
        detector (str): The type of the model that it is for, ``'DETR'`` or
            so. Without a config, MMDetection's own encoding of that.
    """
    if model is not None:
        items = lists_of(model).get('positional_encoding', [])
        known = [item for item in items if hasattr(
            position, str(item.get('type')).rpartition('.')[2])]
        if len(known) < len(items):
            return Origin(unknown='the source has an encoding that is not '
                          'known here')
        return Origin(tuple(items))
    own = {'DETR': SINE, 'DeformableDETR': dict(SINE, offset=-0.5)}
    name = detector.rpartition('.')[2]
    if name not in own:
        return Origin(unknown='the file holds no config')
    return Origin((own[name], ),
                  ("MMDetection's own encoding, for the file holds no config",
                   ))
