"""Reads numbers of the reference implementations; equations: pe/README.md.

``MMPE_GOLDEN=<dir> pytest tests/golden`` takes them from another directory of
the same format.
"""
import os
import re
from pathlib import Path
from typing import Dict, List, Sequence

import numpy as np
import torch

from mmpe.checkpoint.families import FAMILIES
from mmpe.checkpoint.fit import fit
from mmpe.checkpoint.rules import rename

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


def official(entries: Dict[str, torch.Tensor],
             start: str = '',
             mark: str = 'sd__') -> Dict[str, torch.Tensor]:
    """The entries of a state dict, their names beginning with ``start``."""
    return {
        start + key[len(mark):]: value
        for key, value in entries.items() if key.startswith(mark)
    }


def load_official(model: torch.nn.Module,
                  weights: Dict[str, torch.Tensor],
                  family: str,
                  lacking: Sequence[str] = ()) -> None:
    """Import weights with official names into a model. All are used; the
    model has no others but those whose names begin as ``lacking`` says."""
    rules = next(f.rules for f in FAMILIES if f.name == family)
    host = 'backbone.' if hasattr(model, 'backbone') else ''
    renamed, left = rename(weights, rules, set(model.state_dict()), host)
    assert left == []
    state, entries = fit('golden', model, renamed, left)
    for entry in entries:
        assert entry.status == 'loaded' or entry.name.startswith(
            tuple(lacking)), entry
    model.load_state_dict(state)
