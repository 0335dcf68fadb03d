"""Reports with made-up numbers, in the form of mmpe.evaluation.report."""
import base64

import numpy as np

from mmpe.evaluation.average_precision import METRICS
from mmpe.evaluation.errors import KINDS
from mmpe.evaluation.matching import THRESHOLDS

PIXEL = 'data:image/jpeg;base64,' + base64.b64encode(b'\xff\xd8').decode()
GROUPS = dict(
    place=[f'row {r}, column {c}' for r in range(1, 6) for c in range(1, 6)],
    border=['0% to 5%', '5% to 10%', '10% to 20%', '20% to 30%',
            '30% to 50%'],
    crowding=['none', '1', '2 or 3', '4 or more'],
    size=['small', 'medium', 'large'])
WORDS = ("can't tell", 'better', 'worse', 'equal within the margin')


class Maker:
    """Makes a report.

    Args:
        methods (Sequence[str]): Names; the first is the baseline.
        seeds (int): Runs of each. Defaults to 1.
        kinds (Sequence[str]): Defaults to boxes alone.
        classes (Sequence[str]): Names. Every fifth has no objects.
    """

    def __init__(self, methods, seeds=1, kinds=('bbox', ),
                 classes=('person', 'cat', 'dog', 'kite', 'cup')):
        self.rng = np.random.default_rng(0)
        self.methods, self.seeds = list(methods), seeds
        self.runs = {m: [m if seeds == 1 else f'{m}/seed{s}'
                         for s in range(seeds)] for m in self.methods}
        self.counts = {
            name: 0 if i % 5 == 4 else (120, 45, 7, 21)[i % 5]
            for i, name in enumerate(classes)
        }
        self.report = dict(
            version=1,
            mmpe='0.1.0',
            settings=dict(resamples=1000, seed=0, margin=0.3,
                          baseline=self.methods[0]),
            data=dict(
                ann_file='/data/coco/annotations/instances_val2017.json',
                images=5000, objects=36335, crowds=446,
                classes=[dict(name=k, objects=n)
                         for k, n in self.counts.items()],
                without_objects=[k for k, n in self.counts.items() if not n],
                notes=[]),
            iou_types=list(kinds),
            methods=[dict(name=m, is_baseline=i == 0, runs=self.runs[m],
                          seeds=list(range(seeds)))
                     for i, m in enumerate(self.methods)],
            runs=[dict(name=r, method=m, seed=s) for m in self.methods
                  for s, r in enumerate(self.runs[m])],
            results={kind: self.results() for kind in kinds},
            pictures=dict(
                most_different=[self.picture('000000000139.jpg')],
                random=[self.picture('000000000285.jpg')]))

    def picture(self, name):
        return dict(image='1', file_name=name, picture=PIXEL,
                    quality={m: None if i == 1 else 0.5
                             for i, m in enumerate(self.methods)})

    def entry(self, value=0., wide=1., p=True):
        value = float(value + self.rng.normal(0, wide / 2))
        out = dict(value=value, low=value - wide, high=value + wide)
        return dict(out, p=float(self.rng.random())) if p else out

    def results(self):
        numbers = {m: self.numbers(m) for m in self.methods}
        return dict(
            methods={
                m: dict(numbers=numbers[m], by_threshold=list(
                    np.linspace(60, 5, 10) + self.rng.normal(0, 1, 10)))
                for m in self.methods
            },
            runs={
                r: dict(detections=500000, classes={
                    k: float(self.rng.uniform(20, 60)) if n else None
                    for k, n in self.counts.items()
                }) for m in self.methods for r in self.runs[m]
            },
            comparisons=[self.comparison(i, m)
                         for i, m in enumerate(self.methods) if i],
            where=self.where())

    def numbers(self, method):
        out = {}
        for metric in METRICS:
            out[metric] = self.entry(42, 0.6, p=False)
            out[metric]['runs'] = {
                r: out[metric]['value'] + s for s, r in enumerate(
                    self.runs[method])
            }
        out['APS'] = None
        return out

    def comparison(self, i, method):
        sure = self.seeds > 2
        classes = [dict(name=k, objects=n, **self.entry())
                   for k, n in self.counts.items() if n]
        large = [dict(c, stands=c['objects'] == 45) for c in classes
                 if c['objects'] >= 20]
        return dict(
            method=method, baseline=self.methods[0],
            seeds=[self.seeds, self.seeds], covers_seeds=sure,
            numbers=dict({m: self.entry() for m in METRICS}, APS=None),
            by_threshold=[dict(threshold=float(t), **self.entry())
                          for t in THRESHOLDS],
            verdict=dict(
                word=WORDS[i % 4],
                about='the encoding' if sure else 'these checkpoints',
                reason='-0.12 AP, 95% interval -0.50 to +0.26: with 0 in it, '
                'and wider than the margin of 0.3 AP. It is of the images '
                'alone: the noise of training, about 0.3 AP between two '
                'seeds, is not in it.',
                seeds_needed=None if i % 2 else 7, attributable=i % 2 > 0,
                seed_spread=0.15, spread_is_assumed=not sure),
            classes=large,
            small_classes=[c for c in classes if c['objects'] < 20] + [
                dict(name=k, objects=0, value=None)
                for k, n in self.counts.items() if not n])

    def where(self):
        return dict(
            groups={
                name: dict(names=names, **self.compared(len(names)), objects=[
                    0, *self.rng.integers(5, 900, len(names) - 1).tolist()])
                for name, names in GROUPS.items()
            },
            errors=dict(names=list(KINDS), gains={
                m: self.rng.uniform(0, 9, 6).tolist() for m in self.methods
            }, **self.compared(6, first=0.)),
            precision_recall={
                m: {t: np.linspace(1, 0.1, 101).tolist()
                    for t in ('0.5', '0.75')} for m in self.methods
            },
            aspects=dict(
                names=['taller than 4:5', 'about square', '5:4 to 3:2',
                       'wider than 3:2'], images=[900, 400, 3000, 0],
                methods={m: [*self.rng.uniform(38, 45, 3).tolist(), None]
                         for m in self.methods}))

    def compared(self, n, first=None):
        return dict(
            methods={m: [first, *self.rng.uniform(40, 60, n - 1).tolist()]
                     for m in self.methods},
            differences={m: [None, *(self.entry(wide=2.)
                                     for _ in range(n - 1))]
                         for m in self.methods[1:]})


def with_facts(report):
    """Add what is known of the runs besides their detections."""
    names = [m['name'] for m in report['methods']]
    runs = [r['name'] for r in report['runs']]
    for i, method in enumerate(report['methods']):
        method.update(
            encodings='sine + iRPE (product, contextual, k)', epochs=50,
            config='detr_r50_irpe_8xb4-50e_coco', facts=dict(
                parameters=41557000, encoding_parameters=15552 * i,
                gflops=None if i == 1 else 86.25,
                gflops_note='an image of 800x1333',
                seconds_per_iteration=0.4125, memory_mb=8123,
                images_per_second=dict(value=23.4, device='H200',
                                       size='800x1333', batch=1)))
    for run in report['runs']:
        run.update(path=f'/work_dirs/{run["name"]}', epochs=50,
                   checkpoint='epoch_50.pth', checkpoint_kind='last',
                   versions=dict(PyTorch='2.13.0', mmpe='0.1.0'))
    report['same_work'] = dict(
        comparable=False, attributable={n: False for n in names[1:]},
        findings=[
            dict(level='error', method=None, what='annotation file',
                 values={runs[0]: 'instances_val2017.json',
                         runs[-1]: 'val_without_crowds.json'}),
            dict(level='other', method=names[-1], what='epochs',
                 values={r: '50' if r != runs[-1] else '75' for r in runs}),
            dict(level='note', method=None, what='Python',
                 values={runs[0]: '3.11', runs[-1]: '3.12'})
        ])
    report['curves'] = dict(
        x='epoch',
        runs={r: dict(
            loss=[[e / 4, 9 / (1 + e / 20) + 0.05 * i] for e in range(200)],
            ap=[[e, 42 * (1 - 0.9**e) + 0.2 * i] for e in range(1, 51)])
            for i, r in enumerate(runs)},
        epochs_to_reach=dict(ap=40., methods={
            n: None if i == 1 else 30 + i for i, n in enumerate(names)}))
    report['published'] = [
        dict(method='DETR R50', encoding='PEG', epochs=50, AP=33.9,
             AP50=None, AP75=None, APS=None, APM=None, APL=None,
             source='CPVT, table 8', url='https://arxiv.org/abs/2102.10882v1')
    ]
    for kind in report['iou_types']:
        report['results'][kind]['where']['evaluations'] = [
            dict(method=n, test_scale=s, batch_size=2, padding=0.125, AP=a)
            for n in names for s, a in (('800x1333', 42.), ('480x800', 36.5))
        ]
    return report
