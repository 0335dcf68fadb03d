"""How large a model is and how much it computes, from its config alone."""
import copy
import logging
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Iterator, List, Optional, Tuple

import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from mmengine.utils import import_modules_from_strings
from torch import nn
from torch._subclasses.fake_tensor import (DataDependentOutputException,
                                           DynamicOutputShapeException,
                                           FakeTensorMode)
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from mmpe import environment
from .tested_data import pipeline_of, setting

environment.require_hosts()

# isort: split
from mmdet.structures import DetDataSample  # noqa: E402

from mmpe.checkpoint import build_model  # noqa: E402
from mmpe.layers import term_attention  # noqa: E402

_USUAL = (800, 1333)


@dataclass(frozen=True)
class ModelFacts:
    """What a model's config tells. What can't be counted is None.

    Args:
        parameters (int, optional): Of the whole model.
        encoding_parameters (int, optional): Of its position encodings.
        gflops (float, optional): Of one image's forward, in thousand million.
            A multiplication with an addition counts as one, as papers have
            it.
        size (tuple[int, int]): Height and width of that image.
        why (str, optional): Why a number is missing.
    """
    parameters: Optional[int]
    encoding_parameters: Optional[int]
    gflops: Optional[float]
    size: Tuple[int, int]
    why: Optional[str] = None


@dataclass(frozen=True)
class Speed:
    """How fast a model is.

    Args:
        images_per_second (float, optional): None if it can't run.
        device (str): Its name.
        size (tuple[int, int]): Height and width of the images.
        batch (int): Images at a time.
        why (str, optional): Why it can't run.
    """
    images_per_second: Optional[float]
    device: str
    size: Tuple[int, int]
    batch: int
    why: Optional[str] = None


def model_facts(cfg: Config) -> ModelFacts:
    """Count a model's parameters and what it computes at its test scale.

    Args:
        cfg (Config): A whole config. Modules that it imports are imported.
    """
    size = image_size(cfg)
    try:
        model = _build(cfg)
    except Exception as error:  # whatever a user's module may raise
        return ModelFacts(None, None, None, size, _in_a_line(error))
    everything = sum(p.numel() for p in model.parameters())
    own = sum(p.numel() for name, p in model.named_parameters()
              if 'positional_encoding' in name)
    try:
        return ModelFacts(everything, own, _gflops(model, size), size)
    except Exception as error:
        return ModelFacts(everything, own, None, size, _in_a_line(error))


def image_size(cfg: Config) -> Tuple[int, int]:
    """Height and width of an image that fills the test scale, padded as the
    model pads."""
    scales = [step.get('scale') for step in pipeline_of(cfg)
              if str(step.get('type')).endswith('Resize')]
    scale = next((s for s in scales if isinstance(s, (list, tuple))
                  and len(s) == 2), _USUAL)
    if not all(isinstance(n, int) and n > 0 for n in scale):
        scale = _USUAL
    divisor = setting(cfg, 'model', 'data_preprocessor', 'pad_size_divisor')
    divisor = divisor if isinstance(divisor, int) and divisor > 0 else 1
    # MMDetection's scales have no order: the longer side is what it says.
    height, width = (-(-n // divisor) * divisor for n in sorted(scale))
    return height, width


def images_per_second(cfg: Config, device: str, size: Tuple[int, int],
                      batch: int, repeats: int = 7, warm_up: int = 2
                      ) -> Speed:
    """Time a model's forward, without what makes boxes of its outputs.

    The weights are those that a training begins with.

    Args:
        cfg (Config): A whole config.
        device (str): Such as ``'cpu'`` or ``'cuda:0'``.
        size (tuple[int, int]): Height and width of the images.
        batch (int): Images at a time.
        repeats (int): Forwards; the median counts. Defaults to 7.
        warm_up (int): Forwards before. Defaults to 2.
    """
    is_cuda = torch.device(device).type == 'cuda'
    try:
        name = torch.cuda.get_device_name(device) if is_cuda else device
        _import_modules(cfg)
        with _quiet():
            model = build_model(cfg).to(device)
        images = [torch.randint(256, (3, *size), dtype=torch.uint8)
                  for _ in range(batch)]
        data = model.data_preprocessor(
            dict(inputs=images, data_samples=_samples(size, batch)), False)
        seconds = []
        with torch.no_grad():
            for _ in range(warm_up + repeats):
                start = time.perf_counter()
                model(**data, mode='tensor')
                if is_cuda:
                    torch.cuda.synchronize(device)
                seconds.append(time.perf_counter() - start)
    except Exception as error:  # no such device, no memory, missing ops, ...
        return Speed(None, device, size, batch, _in_a_line(error))
    return Speed(batch / median(seconds[warm_up:]), name, size, batch)


def _build(cfg: Config) -> nn.Module:
    """A model with any values, which takes a quarter of the time."""
    _import_modules(cfg)
    init_default_scope(cfg.get('default_scope') or 'mmdet')
    model_cfg = copy.deepcopy(cfg.model)  # heads change theirs
    if 'data_preprocessor' in cfg:
        model_cfg.setdefault('data_preprocessor', cfg.data_preprocessor)
    with _quiet():
        return MODELS.build(model_cfg).eval().requires_grad_(False)


def _import_modules(cfg: Config) -> None:
    modules = cfg.get('custom_imports')
    if modules:
        import_modules_from_strings(**modules)


@contextmanager
def _quiet() -> Iterator[None]:
    """MMEngine logs how it initialised each parameter."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _samples(size: Tuple[int, int], batch: int) -> List[DetDataSample]:
    meta = dict(img_shape=size, ori_shape=size, batch_input_shape=size,
                pad_shape=size, scale_factor=(1., 1.))
    return [DetDataSample(metainfo=dict(meta, img_id=i))
            for i in range(batch)]


def _gflops(model: nn.Module, size: Tuple[int, int]) -> float:
    """Run the model without numbers.

    Its weights and the image are fake tensors: on the meta device, but said
    to be on the CPU, which autocast knows. Tensors that the model makes of
    sizes stay real, for deformable attention splits by them.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    for module in model.modules():
        for tensors in (module._parameters, module._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = mode.from_tensor(tensor)
    image = mode.from_tensor(torch.empty(1, 3, *size))
    counter = FlopCounterMode(display=False)
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        # Fused kernels of the CPU would count as nothing, and tiles take a
        # while although they compute the same.
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
        stack.enter_context(_instead(
            term_attention, 'DENSE_TOKENS', float('inf')))
        stack.enter_context(_instead(
            torch, '_shape_as_tensor', lambda x: torch.tensor(x.shape)))
        stack.enter_context(counter)
        model(image, _samples(size, 1), mode='tensor')
    return counter.get_total_flops() / 2e9


@contextmanager
def _instead(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _in_a_line(error: Exception) -> str:
    if isinstance(error, (DataDependentOutputException,
                          DynamicOutputShapeException)):
        return 'what it computes depends on what it finds in an image'
    text = ' '.join(str(error).split())[:200]
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
