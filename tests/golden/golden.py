"""Reads numbers of the reference implementations; equations: pe/README.md.

``MMPE_GOLDEN=<dir> pytest tests/golden`` takes them from another directory of
the same format.
"""
import os
import re
from pathlib import Path
from typing import Dict, List

import numpy as np
import torch

ROOT = Path(os.environ.get('MMPE_GOLDEN') or Path(__file__).parent)


def load(name: str) -> Dict[str, torch.Tensor]:
    """One file's arrays as tensors, zero-dimensional ones as numbers."""
    with np.load(ROOT / f'{name}.npz') as f:
        arrays = {k: f[k] for k in f.files if f[k].dtype.kind in 'fiub'}
    return {
        k: v.item() if v.ndim == 0 else torch.from_numpy(v)
        for k, v in arrays.items()
    }


def cases(name: str, pattern: str = r'[a-z]+\d+') -> List[str]:
    """Names of a file's cases, ``CASE__KEY``."""
    found = (re.match(f'({pattern})__', key) for key in load(name))
    names = sorted({match[1] for match in found if match})
    assert names, f'{name}.npz has no cases'
    return names


def case(name: str, prefix: str) -> Dict[str, torch.Tensor]:
    """A case's entries without its prefix."""
    start = prefix + '__'
    return {k[len(start):]: v for k, v in load(name).items()
            if k.startswith(start)}


def state_dict(entries: Dict[str, torch.Tensor],
               rules: List) -> Dict[str, torch.Tensor]:
    """The ``sd__`` entries under the names that ``rules`` give, in order."""
    out = {}
    for key, value in entries.items():
        if key.startswith('sd__'):
            key = key[4:]
            for pattern, replacement in rules:
                key = re.sub(pattern, replacement, key)
            out[key] = value
    return out
