"""Sizes of vision transformers."""
from typing import Dict, Union

ARCHS = {
    f'deit-{size}': dict(
        embed_dims=dims,
        num_layers=12,
        num_heads=dims // 64,
        feedforward_channels=4 * dims)
    for size, dims in (('tiny', 192), ('small', 384), ('base', 768))
}


def read_arch(arch: Union[str, dict]) -> Dict[str, int]:
    """The sizes that a name stands for, or those given.

    Raises:
        TypeError: If keys are missing or unknown.
        ValueError: If there is no such name, or heads don't divide the width.
    """
    keys = set(ARCHS['deit-tiny'])
    if isinstance(arch, str):
        if arch not in ARCHS:
            raise ValueError(
                f'arch must be one of {", ".join(ARCHS)} or a dict with '
                f'{", ".join(sorted(keys))}, got {arch!r}')
        return ARCHS[arch]
    if not isinstance(arch, dict) or set(arch) != keys:
        raise TypeError(f'arch must be a dict with {", ".join(sorted(keys))}, '
                        f'got {arch!r}')
    if arch['embed_dims'] % arch['num_heads']:
        raise ValueError(f'arch: embed_dims={arch["embed_dims"]} must be a '
                         f'multiple of num_heads={arch["num_heads"]}')
    return arch
