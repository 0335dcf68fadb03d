"""Images that cannot be read: which one, and whether to go on without it."""
import logging
from typing import Optional

from mmcv.transforms import LoadImageFromFile
from mmengine.dataset import BaseDataset
from mmengine.logging import print_log

from .usage_error import UsageError


class ReadableImages:
    """Loads images as ``LoadImageFromFile`` does, and names one that is
    missing, empty or damaged.

    With its ``ignore_empty=True``, a training takes another image instead and
    logs the name. A test never does: its result would be that of other images.

    Args:
        load (LoadImageFromFile): Of the config.
        dataset (BaseDataset): Whose pipeline it belongs to.

    Raises:
        UsageError: When called, if an image cannot be read.
    """

    def __init__(self, load: LoadImageFromFile, dataset: BaseDataset) -> None:
        self.load = load
        self.test_mode = dataset.test_mode
        self.skip = load.ignore_empty and not self.test_mode

    def __call__(self, results: dict) -> Optional[dict]:
        try:
            loaded = self.load(results)
            reason = 'no such file, or it is empty'
        except Exception as error:  # each backend and decoder has its own
            loaded, reason = None, _first_line(error, results['img_path'])
        if loaded is not None:
            return loaded
        text = f"cannot read image {results['img_path']}: {reason}"
        if not self.skip:
            raise UsageError(
                f'{text}. {"A test" if self.test_mode else "Training"} stops '
                'here' + ('' if self.test_mode else
                          "; LoadImageFromFile's ignore_empty=True in the "
                          'pipeline skips such images'))
        print_log(f'{text}; another one is taken', 'current', logging.WARNING)
        return None

    def __repr__(self) -> str:
        return repr(self.load)


def name_unreadable_images(dataset: BaseDataset) -> None:
    """Make a dataset's pipeline name the images that it cannot read."""
    transforms = getattr(dataset.pipeline, 'transforms', [])
    transforms[:] = [
        ReadableImages(transform, dataset) if isinstance(
            transform, LoadImageFromFile) else transform
        for transform in transforms
    ]


def _first_line(error: Exception, path: str) -> str:
    if isinstance(error, FileNotFoundError):
        return 'no such file'
    if isinstance(error, AssertionError):  # MMCV's, for what no decoder takes
        return 'not an image, or damaged'
    return str(error).strip().split('\n')[0] or type(error).__name__
