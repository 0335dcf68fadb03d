"""COCO annotation files, checked while MMDetection reads them.

Not before: a file of COCO's size takes a quarter of a minute to parse, and
MMDetection throws away what it parsed once it has its list of images.
"""
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence, Set

from mmdet.datasets import CocoDataset
from mmdet.datasets.api_wrappers import COCO
from mmdet.evaluation.metrics import coco_metric

from mmpe.nearest import did_you_mean
from .usage_error import UsageError

_SHOWN = 10  # names in a line


@contextmanager
def checked_files() -> Iterator[Dict[str, Set[int]]]:
    """Check the annotation files of the datasets and metrics that are built
    inside the context; yields the image ids of those read so far, by path.

    Datasets that read files by a class of their own (LVIS, Objects365,
    panoptic COCO) are left alone.
    """
    before = CocoDataset.COCOAPI, coco_metric.COCO
    CocoDataset.COCOAPI = coco_metric.COCO = CheckedCOCO
    CheckedCOCO.images_of = {}
    try:
        yield CheckedCOCO.images_of
    finally:
        CocoDataset.COCOAPI, coco_metric.COCO = before
        CheckedCOCO.images_of = {}


class CheckedCOCO(COCO):
    """MMDetection's reader of annotation files.

    Args:
        annotation_file (str, optional): Path of the file. Defaults to None.

    Raises:
        UsageError: If there is no such file, it isn't in COCO's format, or
            its parts don't fit each other.
    """
    images_of: Dict[str, Set[int]] = {}

    def __init__(self, annotation_file: Optional[str] = None) -> None:
        self.file = annotation_file
        try:
            super().__init__(annotation_file)
        except OSError as error:
            raise UsageError(
                f'annotation file {self.file}: {_where_it_ends(error)}'
            ) from error
        except ValueError as error:  # what json raises
            raise self._error(f'is not JSON: {error}') from error
        except AssertionError as error:
            raise self._error("is not an object as COCO's are") from error

    def createIndex(self) -> None:
        if self.file is not None:  # else it is made of detections
            self._check_images()
            self._check_categories()
            self._check_annotations()
            self.images_of[self.file] = {
                image['id'] for image in self.dataset['images']
            }
        super().createIndex()

    def get_cat_ids(self, cat_names=(), sup_names=(), cat_ids=()) -> List[int]:
        """MMDetection's.

        Raises:
            UsageError: If the classes it is asked for aren't there, or in
                another order. MMDetection numbers labels by the file, so each
                class after a missing one would get the label before its own.
        """
        if len(cat_names):
            self._check_classes(cat_names)
        return super().get_cat_ids(cat_names, sup_names, cat_ids)

    def _error(self, text: str) -> UsageError:
        return UsageError(f'annotation file {self.file} {text}')

    def _check_images(self) -> None:
        if not self.dataset.get('images'):
            raise self._error('has no images')
        for image in self.dataset['images']:
            self._check_entry('an image', image, 'id', 'file_name', 'height',
                              'width')

    def _check_categories(self) -> None:
        if not self.dataset.get('categories'):
            raise self._error('has no categories')
        for category in self.dataset['categories']:
            self._check_entry('a category', category, 'id', 'name')

    def _check_entry(self, kind: str, entry: dict, *keys: str) -> None:
        for key in keys:
            if key not in entry:
                raise self._error(f'has {kind} without {key}: {entry}')
        if not isinstance(entry['id'], int):
            raise self._error(
                f"has {kind} with the id {entry['id']!r}; ids must be whole "
                'numbers, without quotation marks')

    def _check_annotations(self) -> None:
        known = {
            'image_id': {image['id'] for image in self.dataset['images']},
            'category_id': {c['id'] for c in self.dataset['categories']},
        }
        # Files of images to test on have none.
        for annotation in self.dataset.get('annotations', ()):
            for key in ('id', 'bbox', 'area'):
                if key not in annotation:
                    raise self._error(
                        f'has an annotation without {key}: id '
                        f"{annotation.get('id')!r}, image_id "
                        f"{annotation.get('image_id')!r}")
            for key, ids in known.items():
                if annotation.get(key) not in ids:
                    raise self._error(
                        f"has an annotation, id {annotation['id']!r}, whose "
                        f'{key} is {annotation.get(key)!r}; there is no such '
                        f"{key.removesuffix('_id')} (ids are whole numbers, "
                        f'such as {min(ids)})')

    def _check_classes(self, classes: Sequence[str]) -> None:
        if isinstance(classes, str):
            raise UsageError(
                f'metainfo: classes={classes!r} is text; write one class as '
                f'classes=({classes!r}, )')
        names = [category['name'] for category in self.dataset['categories']]
        known, wanted = set(names), set(classes)
        missing = [name for name in classes if name not in known]
        if missing:
            others = len(missing) - 1
            raise self._error(
                f'has no category {missing[0]!r}, which is one of the '
                f"dataset's {len(classes)} classes"
                f"{f' ({others} more are missing)' if others else ''}."
                f'{did_you_mean(missing[0], names)} It has {_some(names)}; '
                "say which by the dataset's metainfo=dict(classes=(...))")
        ordered = [name for name in names if name in wanted]
        if ordered != list(classes):
            raise self._error(
                "has the dataset's classes in another order, or one twice: "
                f'it has {_some(ordered)}, the dataset {_some(classes)}. '
                'MMDetection numbers labels in the order of the file: write '
                'metainfo=dict(classes=(...)) in that order')


def _some(names: Sequence[str]) -> str:
    shown = ', '.join(repr(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f'{shown}, ... ({len(names)})'


def _where_it_ends(error: OSError) -> str:
    """What is missing of a path: the file, or a folder that it is in."""
    path = Path(str(error.filename))
    if not isinstance(error, FileNotFoundError):
        return error.strerror or str(error)
    for folder in reversed(path.parents):
        if not folder.exists():
            return f'no such folder: {folder}'
    there = [file.name for file in path.parent.iterdir()]
    return f'no such file.{did_you_mean(path.name, there)}'
