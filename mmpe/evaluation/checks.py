"""What may make a report misleading, besides what differs between configs."""
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from mmpe.engine.usage_error import UsageError
from .group import Method
from .run import Run
from .same_work import Finding
from .tested_data import dataset_of
from .work_dir import sessions, training_sessions

# What these say differs, a report can't be made of.
_OTHER_DATA = ('images', 'categories', 'annotations')


def attributable(methods: Sequence[Method], base: Method,
                  findings: Sequence[Finding]) -> Dict[str, Optional[bool]]:
    """Whether nothing but the encodings differs from the baseline; None where
    a run has no config to tell."""
    blamed = {name for f in findings if f.level != 'note'
              for name in f.differs}
    # What differs within the baseline is in every comparison.
    if base.name in blamed or any(
            f.level == 'error' and not f.differs for f in findings):
        blamed = {m.name for m in methods}
    bare = {m.name for m in methods for run in m.runs if run.any_cfg is None}
    return {
        m.name: False if m.name in blamed else
        None if {m.name, base.name} & bare else True for m in methods
    }


def trained_since(methods: Sequence[Method]) -> List[Finding]:
    """Work dirs that were trained in once more after the test."""
    found = {}
    for run in (run for m in methods for run in m.runs if run.path.is_dir()):
        tests = [s.folder.name for s in sessions(run.path) if s.has_tested]
        trainings = [s.folder.name for s in training_sessions(run.path)]
        if tests and trainings and max(trainings) > max(tests):
            found[run.name] = (f'tested at {max(tests)}, trained at '
                               f'{max(trainings)}')
    names = tuple(m.name for m in methods
                  if any(run.name in found for run in m.runs))
    return [Finding('other', 'trained again after the test', found, names)
            ] if found else []


def test_data(runs: Sequence[Run], images: int) -> List[Finding]:
    """Tests of a part of the images, or of those of the training."""
    part = {
        run.name: f'{run.metrics["num_images"]} of {images}; in the others '
        'it has found nothing' for run in runs
        if isinstance(run.metrics.get('num_images'), int)
        and run.metrics['num_images'] < images
    }
    seen = {
        run.name: Path(own).name for run in runs
        for own in [dataset_of(run.any_cfg, 'train_dataloader').get(
            'ann_file')]
        if own and own == dataset_of(run.cfg).get('ann_file')
    }
    found = []
    if part:
        found.append(Finding('error', 'tested on a part of the images', part,
                             ()))
    if seen:
        found.append(Finding('note', 'tested on the images of the training: '
                             'this says nothing of others', seen, ()))
    return found


def other_numbers(runs: Sequence[Run],
                   report: Mapping[str, Any]) -> List[Finding]:
    """Where metrics.json has another AP than the predictions beside it."""
    found = []
    for kind, results in report['results'].items():
        ap = {
            name: value for method in results['methods'].values()
            for name, value in ((method['numbers']['AP'] or {}).get(
                'runs') or {}).items()
        }
        for run in runs:
            theirs = run.metrics.get(f'coco/{kind}_mAP')
            if isinstance(theirs, float) and theirs >= 0 and abs(
                    100 * theirs - ap.get(run.name, 100 * theirs)) > 0.05:
                found.append(
                    Finding(
                        'note', f'AP ({kind}) in metrics.json', {
                            run.name: f'{100 * theirs:.2f}, but the '
                            f'predictions have {ap[run.name]:.2f}'
                        }, ()))
    return found


def check_data(findings: Sequence[Finding]) -> None:
    for f in findings:
        if f.level == 'error' and f.what in _OTHER_DATA:
            values = '; '.join(f'{k}: {v}' for k, v in f.values.items())
            raise UsageError(f'the runs were tested on other {f.what} '
                             f'({values}); --ann FILE holds all to one file')
