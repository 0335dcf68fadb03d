"""Checkpoints whose names are the model's own: MMDetection's,
MMSegmentation's and mmpe's."""
from typing import Any, Mapping, Optional

from torch import Tensor

from mmpe.engine.config_text import read_config_text
from mmpe.position import as_items
from .detr import SINE
from .family import Family, Origin
from .rules import Rule


def unknown(weights: Mapping[str, Tensor]) -> Origin:
    return Origin(unknown='the file holds no config')


OPENMMLAB = Family(
    'openmmlab', 'MMDetection, MMSegmentation or mmpe', marks=[],
    rules=[Rule('{rest}', '{rest}')], origin=unknown)


def model_of(meta: Any) -> Optional[Mapping]:
    """The model in the config that MMEngine left in a checkpoint, which is
    read as data and never run."""
    text = meta.get('cfg') if isinstance(meta, Mapping) else None
    if not isinstance(text, str):
        return None
    model = read_config_text(text).get('model')
    return model if isinstance(model, Mapping) else None


def origin_of(model: Optional[Mapping], detector: str) -> Origin:
    """The encodings of a model of MMDetection or mmpe.

    Args:
        model (Mapping, optional): Its config, where the file has it.
        detector (str): The type of the model that it is for, ``'DETR'`` or
            so. Without a config, MMDetection's own encoding of that.
    """
    if model is not None:
        host = model if 'positional_encoding' in model else model.get(
            'backbone', {})
        if 'positional_encoding' not in host:
            return Origin()
        try:
            return Origin(tuple(as_items(host['positional_encoding'])))
        except TypeError:
            return Origin(unknown='its config is not understood')
    own = {'DETR': SINE, 'DeformableDETR': dict(SINE, offset=-0.5)}
    name = detector.rpartition('.')[2]
    if name not in own:
        return Origin(unknown='the file holds no config')
    return Origin((own[name], ),
                  ("MMDetection's own encoding, for the file holds no config",
                   ))
