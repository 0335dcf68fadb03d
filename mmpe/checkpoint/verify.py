"""Whether an imported model computes what its source computes."""
from typing import Any, Dict, Iterator, Mapping

import torch
from mmcv.transforms import Compose
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn

from mmpe.engine.usage_error import UsageError
from .family import Origin
from .importing import build_model
from .report import Report
from .same_function import host_of

TOLERANCE = 1e-4


def compare_on_image(cfg: Config, model: nn.Module, origin: Origin,
                     report: Report, image: str) -> Dict[str, Any]:
    """Compare the outputs of an imported model on an image with those of the
    model that its source is of: of MMDetection where it has that, else of
    mmpe with the source's encodings.

    Args:
        cfg (Config): Of the model.
        model (nn.Module): With the imported numbers.
        origin (Origin): The source's encodings.
        report (Report): Of the import.
        image (str): Path of the image, which goes through the test pipeline.

    Returns:
        dict: ``difference``, the largest; ``agrees`` and, in words, ``says``.

    Raises:
        UsageError: If there is no source to compare with, or no pipeline.
    """
    if origin.unknown or report.missed:
        why = origin.unknown or 'the import is incomplete'
        raise UsageError(f'--check has nothing to compare with: {why}')
    source_cfg = as_source(cfg, origin)
    source = build_model(source_cfg)
    weights = model.state_dict()
    lacking = [name for name in source.state_dict() if name not in weights]
    if lacking:
        raise UsageError('--check has nothing to compare with: the source has '
                         f'{lacking[0]}, the import has not')
    source.load_state_dict({k: weights[k] for k in source.state_dict()})
    data = _batch(cfg, image)
    with torch.no_grad():
        pairs = list(
            zip(_outputs(source, data), _outputs(model, data), strict=True))
    difference = max(
        float((a.double() - b.double()).abs().max() / max(
            1., float(a.abs().max()))) for a, b in pairs)
    agrees = difference <= TOLERANCE
    name = str(source_cfg.model.type)
    words = 'agree with' if agrees else 'differ from'
    return dict(
        image=image,
        source_model=name,
        difference=difference,
        agrees=agrees,
        says=f'outputs on {image} {words} those of {name} with the source\'s '
        f'encodings: largest difference {difference:.1e} of the largest '
        'output')


def as_source(cfg: Config, origin: Origin) -> Config:
    """The config with the source's encodings, of MMDetection's own class if
    that has them."""
    cfg = Config(cfg.to_dict())
    items = [dict(item) for item in origin.items]
    kind = str(cfg.model.type)
    host = host_of(cfg.model)
    is_sine = len(items) == 1 and items[0]['type'].endswith(
        'SinePositionalEncoding') and not {'dims', 'order', 'start'
                                           } & set(items[0])
    # MMDetection's decoder has the encoder's encoding on its keys.
    is_usual = cfg.model.get('memory_positional_encoding', 'same') == 'same'
    if (host is cfg.model and is_sine and is_usual
            and 'encoder' in cfg.model):
        items[0].pop('type')
        dims = cfg.model.encoder.layer_cfg.self_attn_cfg.get(
            'embed_dims', 256)
        cfg.model.type = f'mmdet.{kind.rpartition(".")[2]}'
        cfg.model.positional_encoding = dict(
            items[0], num_feats=dims // 2)
        cfg.model.pop('memory_positional_encoding', None)
    elif 'positional_encoding' in host:
        host.positional_encoding = items
    return cfg


def _batch(cfg: Config, image: str) -> Dict[str, Any]:
    dataset = cfg.get('test_dataloader', {}).get('dataset', {})
    pipeline = [
        step for step in dataset.get('pipeline', [])
        if 'Annotations' not in str(step['type'])
    ]
    if not pipeline:
        raise UsageError('--check needs the test pipeline of a '
                         'test_dataloader in CONFIG')
    try:
        return pseudo_collate([Compose(pipeline)(
            dict(img_path=image, img_id=0))])
    except (OSError, AttributeError) as error:
        raise UsageError(f'--check cannot read {image}: {error}') from error


def _outputs(model: nn.Module, data: Mapping) -> Iterator[Tensor]:
    """All floating point numbers that a model gives before it decodes them."""
    data = model.data_preprocessor(dict(data), False)
    yield from _tensors(model(**data, mode='tensor'))


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        if value.is_floating_point() and value.numel():
            yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
