"""Which part of a batch's canvas each image fills, for modules that are only
given feature maps."""
import weakref
from contextvars import ContextVar
from typing import List, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

_BATCH: ContextVar[Optional[Tuple[weakref.ref, List[Tuple[int, int]]]]] = (
    ContextVar('batch', default=None))


def record_batch(inputs: Tensor, sizes: Sequence[Tuple[int, int]]) -> None:
    """Remember the images of a batch for as long as its tensor lives.

    Args:
        inputs (Tensor): The batch, ``(B, C, H, W)``.
        sizes (Sequence[tuple[int, int]]): Height and width of each image on
            it, in pixels, from the top-left one on.
    """
    _BATCH.set((weakref.ref(inputs), [tuple(s[:2]) for s in sizes]))


def padding_mask(x: Tensor) -> Optional[Tensor]:
    """What of a map is padding, by the batch that is being worked on.

    Args:
        x (Tensor): The batch itself or a feature map of it, ``(B, C, h, w)``.

    Returns:
        Tensor: bool, ``(B, h, w)``, True is padding; MMDetection's rule, the
        nearest pixel. None if all is valid, or nothing is known: the batch
        wasn't made by one of mmpe's data preprocessors, or ``x`` isn't of it,
        such as a map of a window that slides over it.
    """
    batch, sizes = _BATCH.get() or (lambda: None, None)
    inputs = batch()
    if inputs is None or len(inputs) != len(x):
        return None
    canvas, shape = tuple(inputs.shape[-2:]), tuple(x.shape[-2:])
    if not _is_scaled(canvas, shape) or set(sizes) == {canvas}:
        return None
    mask = torch.ones(len(x), *canvas, device=x.device)
    for m, (h, w) in zip(mask, sizes):
        m[:h, :w] = 0
    return F.interpolate(mask[None], shape)[0].bool()


def _is_scaled(canvas: Tuple[int, int], shape: Tuple[int, int]) -> bool:
    """Whether a map of this shape has one stride for both sides."""
    return any(
        all(h in (n // stride, -(-n // stride))
            for n, h in zip(canvas, shape))
        for stride in range(1, max(canvas) + 1))
