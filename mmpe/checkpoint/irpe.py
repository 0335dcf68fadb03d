"""Tables of the official iRPE code."""
from typing import Mapping, Optional

from torch import Tensor

# After the name of an attention module: what ImageRPE calls it. The two maps
# of the cross method have a table each.
LOOKUP = {
    f'rpe_{letter}.{part}lookup_table_{kind}': f'{letter}{suffix}'
    for letter in 'qkv'
    for part, suffix in {'': '', 'rp_rows.': '_rows',
                         'rp_cols.': '_cols'}.items()
    for kind in ('weight', 'bias')
}


def irpe_item(weights: Mapping[str, Tensor],
              attention: str) -> Optional[dict]:
    """What the tables of an attention module tell of its encoding.

    Names and shapes show all but the map, of which there are three with one
    table, and alpha, beta and gamma, which the number of buckets follows from.
    """
    found = {
        target: weights[f'{attention}.{source}']
        for source, target in LOOKUP.items()
        if f'{attention}.{source}' in weights
    }
    if not found:
        return None
    letters = ''.join(x for x in 'qkv' if any(k[0] == x for k in found))
    bias = any(f'{attention}.{source}' in weights for source in LOOKUP
               if source.endswith('bias'))
    item = dict(
        type='mmpe.ImageRPE',
        mode='bias' if bias else 'contextual',
        target=letters,
        shared_heads=all(len(table) == 1 for table in found.values()))
    if any('_' in target for target in found):
        item['method'] = 'cross'
    return item
