"""Whether methods did the same work, but for their position encodings."""
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import (Any, Callable, Dict, Iterator, List, Optional, Sequence,
                    Tuple)

from mmpe.engine.config_text import differences
from mmpe.engine.usage_error import UsageError
from .group import Method
from .run import Run
from .settings import content_of, settings_of
from .tested_data import pipeline_of, setting

LEVELS = ('error', 'other', 'note')
_SHOWN = 160  # letters of a value
_SOFTWARE = ('PyTorch', 'MMEngine', 'MMCV', 'MMDetection', 'mmpe')


@dataclass(frozen=True)
class Finding:
    """Something that isn't the same for all runs.

    Args:
        level (str): ``'error'``: their AP can't be compared at all.
            ``'other'``: a difference of AP may come from it, not from the
            encodings. ``'note'``: to be known.
        what (str): Such as ``'test scale'``, or the key of a setting.
        values (dict[str, str]): In words, by name of the run.
        differs (tuple[str]): Methods of which a run has another value than
            the baseline's first run.
    """
    level: str
    what: str
    values: Dict[str, str]
    differs: Tuple[str, ...]


def same_work(methods: Sequence[Method], baseline: Method) -> List[Finding]:
    """Compare all methods with a baseline.

    Args:
        methods (Sequence[Method]): The baseline may be among them.
        baseline (Method): What the others are compared with.

    Returns:
        list[Finding]: Errors first, then others, then notes.

    Raises:
        UsageError: If annotation files differ and one can't be read.
    """
    others = [method for method in methods if method is not baseline]
    everyone = [baseline, *others]
    found = [
        *_of_facts(everyone), *_of_settings(everyone),
        *_of_single_runs(everyone)
    ]
    return sorted(found, key=lambda f: LEVELS.index(f.level))


def _of_facts(methods: Sequence[Method]) -> Iterator[Finding]:
    files = {run.ann_file.resolve() for m in methods for run in m.runs}
    facts = dict(_FACTS)
    if len(files) > 1:
        facts.update((what, ('error', partial(_part_of_content, i)))
                     for i, (what, _) in enumerate(_PARTS))
    for what, (level, get) in facts.items():
        yield from _compare(methods, level, what, get)


def _compare(methods: Sequence[Method], level: str, what: str,
             get: Callable[[Run], Optional[str]]) -> Iterator[Finding]:
    """Where ``get`` differs; what it doesn't know is no difference."""
    values = {run.name: get(run) for m in methods for run in m.runs}
    first = values[methods[0].runs[0].name]
    differs = tuple(
        m.name for m in methods
        if any(values[run.name] not in (first, None) for run in m.runs))
    if first is not None and differs:
        yield Finding(
            level, what,
            {name: _short(v or 'unknown') for name, v in values.items()},
            differs)


def _of_settings(methods: Sequence[Method]) -> Iterator[Finding]:
    """Where configs differ besides what :data:`_FACTS` has."""
    settings = {
        run.name: _rest(settings_of(run))
        for m in methods for run in m.runs
    }
    first = settings[methods[0].runs[0].name]
    if first is None:
        return
    other = {
        name: {key: pair for key, *pair in differences(first, own)}
        for name, own in settings.items() if own is not None
    }
    usual = {key: pair[0] for found in other.values()
             for key, pair in found.items()}
    for key in usual:
        values = {
            name: _short(other[name][key][1] if key in other[name] else
                         usual[key]) if name in other else 'unknown'
            for name in settings
        }
        yield Finding(
            'other', key, values,
            tuple(m.name for m in methods
                  if any(key in other.get(run.name, ()) for run in m.runs)))


def _of_single_runs(methods: Sequence[Method]) -> Iterator[Finding]:
    runs = [run for method in methods for run in method.runs]
    bare = {run.name: 'unknown' if run.any_cfg is None else 'known'
            for run in runs}
    if 'unknown' in bare.values():
        yield Finding('note', 'config', bare, tuple(
            m.name for m in methods
            if any(bare[run.name] == 'unknown' for run in m.runs)))
    for method in methods:
        counts = Counter(seed for seed in method.seeds if seed is not None)
        if counts and max(counts.values()) > 1:
            yield Finding('note', 'the same seed more than once',
                          {run.name: str(run.seed) for run in method.runs},
                          (method.name, ))


def _max_per_img(run: Run) -> Optional[str]:
    cfg = setting(run.cfg, 'model', 'test_cfg')
    found = setting(cfg, 'rcnn', 'max_per_img') or setting(cfg, 'max_per_img')
    return None if found is None else str(found)


def _test_scale(run: Run) -> Optional[str]:
    steps = [step for step in pipeline_of(run.cfg)
             if str(step.get('type')).endswith('Resize')]
    words = []
    for step in steps:
        scale = step.get('scale')
        size = 'x'.join(map(str, scale)) if isinstance(
            scale, (list, tuple)) else str(scale or step.get('scale_factor'))
        words.append(size if step.get('keep_ratio') else
                     f'{size}, whatever the aspect')
    return ', '.join(words) or (None if run.cfg is None else 'as they are')


def _batch_size(run: Run) -> Optional[str]:
    size = setting(run.any_cfg, 'train_dataloader', 'batch_size')
    if not isinstance(size, int) or run.processes is None:
        return None
    return f'{size * run.processes}'


def _software(name: str) -> Callable[[Run], Optional[str]]:
    def version(run: Run) -> Optional[str]:
        found = [v.get(name) for v in (run.train_versions, run.versions)]
        return ', tested with '.join(dict.fromkeys(filter(None, found))
                                     ) or None
    return version


def _known(value: Any) -> Optional[str]:
    return None if value is None else str(value)


_FACTS: Dict[str, Tuple[str, Callable[[Run], Optional[str]]]] = {
    'classes': ('error', lambda run: run.classes and ', '.join(
        sorted(run.classes))),
    'number of images': ('error', lambda run: _known(
        run.metrics.get('num_images'))),
    'max_per_img': ('other', _max_per_img),
    'test scale': ('other', _test_scale),
    'test batch size': ('other', lambda run: _known(
        setting(run.cfg, 'test_dataloader', 'batch_size'))),
    'checkpoint': ('other', lambda run: run.checkpoint_kind),
    'epochs': ('other', lambda run: _known(run.epochs)),
    'training batch size': ('other', _batch_size),
    'initial weights': ('other', lambda run: None if run.train_cfg is None
                        else content_of(
                            run.load_from or 'none loaded')),
    **{name: ('other', _software(name)) for name in _SOFTWARE},
    **{name: ('note', _software(name))
       for name in ('Python', 'TorchVision', 'OpenCV', 'NVCC', 'GPU')},
}


def _rest(settings: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """Settings without what :data:`_FACTS` has."""
    if settings is None:
        return None
    for step in pipeline_of(settings):
        if str(step.get('type')).endswith('Resize'):
            for key in ('scale', 'scale_factor', 'keep_ratio'):
                step.pop(key, None)
    for place, key in ((('train_cfg', ), 'max_epochs'),
                       (('test_dataloader', ), 'batch_size'),
                       (('model', 'test_cfg'), 'max_per_img'),
                       (('model', 'test_cfg', 'rcnn'), 'max_per_img')):
        part = setting(settings, *place)
        if isinstance(part, dict):
            part.pop(key, None)
    return settings


def _short(value: Any) -> str:
    """In words that differ where values do."""
    text = 'not set' if value is ... else str(value)
    if len(text) <= _SHOWN:
        return text
    return f'{text[:_SHOWN]}... ({_digest(text)})'


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


_PARTS = (('images', ('id', 'width', 'height')),
          ('categories', ('id', 'name')),
          ('annotations', ('id', 'image_id', 'category_id', 'bbox', 'area',
                           'iscrowd', 'segmentation')))


def _part_of_content(i: int, run: Run) -> str:
    return _content(run.ann_file.resolve())[i]


@lru_cache(maxsize=None)
def _content(path: Path) -> Tuple[str, ...]:
    """The parts of an annotation file, in words that differ where they do."""
    try:
        content = json.loads(path.read_bytes())
        parts = [
            sorted(json.dumps([item.get(key) for key in keys])
                   for item in content[name]) for name, keys in _PARTS
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise UsageError(f'{path} is no annotation file: {e!r}') from e
    return tuple(f'{len(part)} ({_digest(repr(part))})' for part in parts)
