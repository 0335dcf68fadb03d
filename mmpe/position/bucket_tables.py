"""What encodings with a table entry per bucket of offsets share."""
from typing import Dict, List, Tuple

import torch
from torch import Tensor, nn

from .base import PositionEncoding, Resized
from .buckets import OffsetBuckets


class BucketTables(PositionEncoding):
    """Tables that begin at zero, and that take those of a checkpoint with
    another number of buckets."""

    def bucket_axes(self) -> Dict[str, Tuple[int, OffsetBuckets]]:
        """Of each table, by name: the axis that counts buckets, and the
        buckets. Those of a prefix come last."""
        raise NotImplementedError

    def init_weights(self) -> None:
        self.fill()
        super().init_weights()

    def fill(self) -> None:
        """Give the tables their first values."""
        for table in self.parameters():
            nn.init.zeros_(table)

    @property
    def changes_nothing(self) -> bool:
        return not any(table.any() for table in self.parameters())

    def adapt(self, weights: Dict[str, Tensor], prefix: str) -> List[Resized]:
        """Resize tables of other alpha, beta and gamma.

        Note:
            Ours: a bucket takes the numbers that the other table has for the
            offset in the bucket's middle.
        """
        own, changes = dict(self.named_parameters()), []
        for name, (axis, buckets) in self.bucket_axes().items():
            table = weights.get(prefix + name)
            wanted = tuple(own[name].shape)
            if table is None or tuple(table.shape) == wanted:
                continue
            message = (f'{prefix}{name} of the checkpoint has the shape '
                       f'{tuple(table.shape)}, the model needs {wanted}')
            count = table.shape[axis] if table.dim() == len(wanted) else 0
            fits = list(wanted)
            fits[axis] = count
            if tuple(table.shape) != tuple(fits):
                raise ValueError(f'{message}: only the number of buckets may '
                                 'differ, not heads, width or mode')
            try:
                sources = buckets.sources(count, self.num_prefix)
            except ValueError as error:
                raise ValueError(f'{message}: {error}') from error
            none = table.new_zeros(
                [1 if i == axis % len(wanted) else n
                 for i, n in enumerate(wanted)])
            table = torch.cat([table, none], axis)
            weights[prefix + name] = table.index_select(
                axis, sources.to(table.device))
            changes.append(
                Resized(prefix + name, f'{count} buckets',
                        f'{wanted[axis]} buckets', 'middle of each bucket'))
        return changes
