"""Datasets that don't fit the model, the metric or the disk."""
import traceback
from typing import Dict, Iterator, Optional, Set

from mmdet.datasets import CocoDataset
from mmdet.evaluation import CocoMetric
from mmdet.models.dense_heads import RPNHead
from mmengine import fileio
from mmengine.dataset import BaseDataset
from mmengine.evaluator import Evaluator
from mmengine.runner import Runner

from .annotation_file import checked_files
from .check_config import config_errors
from .readable_images import ReadableImages, name_unreadable_images
from .usage_error import UsageError


def check_data(runner: Runner, *phases: str) -> None:
    """Build the data of a run, as the run would, and check it.

    Looks at each entry of the annotation files, but only at one image of each
    dataset: other unreadable images are named when the run comes to them.

    Args:
        runner (Runner): It hasn't started yet.
        *phases (str): ``'train'``, ``'val'``, ``'test'``: which data it will
            use. Those that its config lacks are left out, but not the first.

    Raises:
        UsageError: If an annotation file, its classes, the images or the
            model's number of classes don't fit each other.
    """
    with config_errors(runner.cfg), checked_files() as images_of:
        for phase in phases:
            if getattr(runner, f'_{phase}_loop') is None:
                if phase == phases[0]:
                    raise UsageError(
                        f'config {runner.cfg.filename} has no '
                        f'{phase}_dataloader and {phase}_cfg')
                continue
            loop = _build(runner, phase)
            leaves = [
                leaf for leaf in _leaves(loop.dataloader.dataset)
                if isinstance(leaf, BaseDataset)
            ]
            for leaf in leaves:
                _check_number_of_classes(runner, leaf)
                name_unreadable_images(leaf)
                _check_first_image(leaf)
            if phase != 'train':
                _check_metrics(loop.evaluator, leaves, images_of)


def _build(runner: Runner, phase: str):
    """The loop of a phase; what it holds is built with it."""
    try:
        return getattr(runner, f'{phase}_loop')
    except ValueError as error:
        dataset = _dataset_that_raised(error)
        if dataset is None or 'at least one array' not in str(error):
            raise
        raise UsageError(
            f'no image of {dataset.ann_file} is left: none has an object of '
            f'the classes that filter_cfg={dataset.filter_cfg} lets through'
        ) from error


def _dataset_that_raised(error: Exception) -> Optional[BaseDataset]:
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get('self')
        if isinstance(owner, BaseDataset):
            return owner
    return None


def _leaves(dataset) -> Iterator:
    """The datasets inside RepeatDataset, ConcatDataset and the like."""
    inner = getattr(dataset, 'datasets', None)
    if inner is None and hasattr(dataset, 'dataset'):
        inner = [dataset.dataset]
    if inner is None:
        yield dataset
        return
    for one in inner:
        yield from _leaves(one)


def _check_number_of_classes(runner: Runner, dataset: BaseDataset) -> None:
    model = runner.model
    while hasattr(model, 'module'):  # of several processes, or test time
        model = model.module
    head = getattr(model, 'bbox_head', None)
    number = getattr(head, 'num_classes', None)
    classes = dataset.metainfo.get('classes')
    if number is None or classes is None or isinstance(head, RPNHead):
        return
    if number != len(classes):
        raise UsageError(
            f'model.bbox_head.num_classes={number}, but the dataset of '
            f'{dataset.ann_file} has {len(classes)} classes, from '
            f'{classes[0]!r} to {classes[-1]!r}')


def _check_first_image(dataset: BaseDataset) -> None:
    """One image is enough to see a wrong folder, and a test after an epoch
    is late to see it."""
    skips = any(
        isinstance(transform, ReadableImages) and transform.skip
        for transform in getattr(dataset.pipeline, 'transforms', []))
    if not len(dataset) or skips:
        return
    path = dataset.get_data_info(0).get('img_path')
    if isinstance(path, str) and not fileio.exists(
            path, backend_args=getattr(dataset, 'backend_args', None)):
        raise UsageError(
            f'no such image: {path}, the first one of {dataset.ann_file}; '
            f'data_root={dataset.data_root!r} and data_prefix='
            f'{dataset.data_prefix} say where images are')


def _check_metrics(evaluator: Evaluator, datasets: list,
                   images_of: Dict[str, Set[int]]) -> None:
    datasets = [one for one in datasets if isinstance(one, CocoDataset)]
    tested = set().union(*(images_of.get(one.ann_file, ())
                           for one in datasets))
    for metric in evaluator.metrics:
        api = getattr(metric, '_coco_api', None)
        if not isinstance(metric, CocoMetric) or api is None or not tested:
            continue
        measured = images_of.get(api.file, set())
        if measured != tested:
            files = ', '.join(one.ann_file for one in datasets)
            raise UsageError(
                f'the evaluator takes its annotations from {api.file}, the '
                f'dataset from {files}; they have different images: '
                f'{len(measured - tested)} only the first, '
                f'{len(tested - measured)} only the other')
        api.get_cat_ids(cat_names=datasets[0].metainfo['classes'])
        for annotation in api.anns.values():
            if 'iscrowd' not in annotation:
                raise UsageError(
                    f'annotation file {api.file} has an annotation without '
                    f"iscrowd, id {annotation['id']!r}; COCO's evaluation "
                    'needs it (0 for a single object)')
