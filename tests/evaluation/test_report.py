"""Whole reports, by the tool, of runs as tools/test.py leaves them."""
import copy
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from coco_files import SAMPLE, perturbed, pycocotools, stats, write

ROOT = Path(__file__).parents[2]
CONTENT = json.loads(SAMPLE.read_text())
CONFIG = '''
model = dict(
    type='mmpe.DETR', test_cfg=dict(max_per_img=100),
    positional_encoding={items})
test_dataloader = dict(batch_size=1, dataset=dict(
    type='CocoDataset', ann_file={ann!r}, data_prefix=dict(img={images!r}),
    pipeline=[dict(type='Resize', scale=(1333, 800), keep_ratio=True)]))
test_evaluator = dict(type='CocoMetric', ann_file={ann!r})
randomness = dict(seed={seed})
{more}
'''
SINE = "[dict(type='mmpe.SinePositionalEncoding')]"
PEG = "[dict(type='mmpe.PEG')]"


@pytest.fixture
def work_dir(tmp_path):
    """Makes a work dir; returns its path."""
    ann = write(tmp_path / 'data', CONTENT) / 'annotations.json'

    def make(name, items=SINE, seed=0, shift=0.12, found=None, more='',
             config='detr.py', masks=False):
        folder = tmp_path / name
        folder.mkdir()
        (folder / config).write_text(CONFIG.format(
            items=items, ann=str(ann), images=str(SAMPLE.parent / 'images'),
            seed=seed, more=more))
        if found is None:
            found = perturbed(CONTENT, seed, shift)
        (folder / 'predictions.bbox.json').write_text(json.dumps(found))
        if masks:
            (folder / 'predictions.segm.json').write_text(json.dumps(
                perturbed(CONTENT, seed, shift, masks=True)))
        (folder / 'metrics.json').write_text(json.dumps(dict(
            config=Path(config).stem, checkpoint='epoch_3.pth',
            num_images=len(CONTENT['images']))))
        return folder

    return make


@pytest.fixture
def tool(tmp_path, monkeypatch, capsys):
    """Runs the tool; returns the report and what it printed."""

    monkeypatch.setattr('mmpe.evaluation.report.PICTURES', 1)

    def call(*args, resamples=100):
        out = tmp_path / 'report'
        monkeypatch.setattr(sys, 'argv', [
            'report.py', *map(str, args), '--out', str(out), '--resamples',
            str(resamples)
        ])
        runpy.run_path(str(ROOT / 'tools/report.py'), run_name='__main__')
        printed = capsys.readouterr().out
        assert printed.splitlines()[-1] == f'Report: {out / "report.html"}'
        for end in 'html', 'md', 'tex':
            assert (out / f'report.{end}').stat().st_size > 300
        return json.loads((out / 'report.json').read_text()), printed

    return call


@pytest.fixture
def refused(tool, capsys):
    """Runs the tool, which must end with one line; returns it."""

    def call(*args):
        with pytest.raises(SystemExit) as status:
            tool(*args)
        assert status.value.code == 2
        return capsys.readouterr().err.splitlines()[-1]

    return call


def test_a_swap(work_dir, tool):
    base = work_dir('a', masks=True, shift=0.02)
    other = work_dir('b', PEG, shift=0.3, masks=True, config='peg.py')
    report, printed = tool(base, other)
    assert report['version'] == 1
    assert [m['encodings'] for m in report['methods']] == [
        'sine', 'PEG after layer 0']
    assert report['iou_types'] == ['bbox', 'segm']
    for kind in 'bbox', 'segm':
        for name, shift in ('detr', 0.02), ('peg', 0.3):
            found = perturbed(CONTENT, 0, shift, kind == 'segm')
            numbers = report['results'][kind]['methods'][name]['numbers']
            for metric, value in stats(
                    pycocotools(CONTENT, found, kind)).items():
                assert numbers[metric]['value'] == pytest.approx(
                    100 * value, abs=1e-4)
        comparison, = report['results'][kind]['comparisons']
        assert comparison['verdict']['word'] == 'worse'
        assert comparison['verdict']['about'] == 'these checkpoints'
        errors = report['results'][kind]['where']['errors']
        place = errors['names'].index('place')
        assert errors['gains']['peg'][place] > errors['gains']['detr'][place]
    assert report['same_work']['comparable']
    assert report['same_work']['attributable']['peg']
    assert report['pictures']['most_different']
    assert 'worse' in printed


def test_one_and_the_same(work_dir, tool):
    report, _ = tool(work_dir('a'), work_dir('b', PEG, config='peg.py'))
    comparison, = report['results']['bbox']['comparisons']
    for line in comparison['numbers'].values():
        assert (line['value'], line['low'], line['high']) == (0, 0, 0)
    assert comparison['verdict']['word'] == 'equal within the margin'
    assert report['pictures']['most_different'] == []


def test_seeds_are_one_method(work_dir, tool):
    runs = [work_dir(f'a{i}', seed=i, shift=0.05) for i in range(3)]
    runs += [work_dir(f'b{i}', PEG, seed=i, shift=0.25, config='peg.py')
             for i in range(3)]
    report, _ = tool(*runs, '--baseline', 'peg')
    assert [len(m['runs']) for m in report['methods']] == [3, 3]
    comparison, = report['results']['bbox']['comparisons']
    assert comparison['seeds'] == [3, 3]
    verdict = comparison['verdict']
    assert verdict['word'] == 'better'
    assert verdict['about'] == 'the encoding'
    assert "Student's t with 3 and 3 seeds" in verdict['reason']
    values = report['results']['bbox']['methods']['detr']['numbers']['AP']
    assert values['value'] == pytest.approx(
        np.mean(list(values['runs'].values())))


def test_what_else_differs_is_to_blame(work_dir, tool):
    report, _ = tool(
        work_dir('a'),
        work_dir('b', PEG, shift=0.4, config='peg.py',
                 more='optim_wrapper = dict(optimizer=dict(lr=1.))'))
    assert report['same_work']['attributable'] == dict(detr=True, peg=False)
    finding, = report['same_work']['findings']
    assert finding['what'] == 'optim_wrapper' and finding['level'] == 'other'
    verdict = report['results']['bbox']['comparisons'][0]['verdict']
    assert 'Not attributable to the encoding' in verdict['reason']


def test_files_without_configs(tmp_path, tool):
    write(tmp_path, CONTENT, **{'a.bbox': perturbed(CONTENT, 1),
                                'b.bbox': perturbed(CONTENT, 2)})
    ann = tmp_path / 'annotations.json'
    report, _ = tool(f'one={tmp_path}/a.bbox.json',
                     f'two={tmp_path}/b.bbox.json', '--ann', ann)
    assert [m['name'] for m in report['methods']] == ['one', 'two']
    assert report['methods'][0]['facts'].get('parameters') is None
    verdict = report['results']['bbox']['comparisons'][0]['verdict']
    assert not verdict['attributable']
    assert 'Without configs it is not known' in verdict['reason']
    page = (tmp_path / 'report/report.html').read_text()
    assert 'nothing differs but the encodings' not in page


@pytest.mark.parametrize('empty', [[0], [0, 1]])
def test_runs_that_found_nothing(work_dir, tool, empty):
    runs = [
        work_dir('a', found=[] if 0 in empty else None),
        work_dir('b', PEG, found=[] if 1 in empty else None, config='peg.py')
    ]
    report, _ = tool(*runs)
    ap = report['results']['bbox']['methods']['detr']['numbers']['AP']
    assert ap['value'] == 0


def test_a_test_of_a_part_of_the_images_is_named(work_dir, tool):
    folder = work_dir('a')
    (folder / 'metrics.json').write_text('{"num_images": 4}')
    report, _ = tool(folder)
    finding, = report['same_work']['findings']
    assert finding['level'] == 'error'
    assert finding['values']['a'].startswith('4 of ')


def test_a_test_on_the_training_images_is_named(work_dir, tool, tmp_path):
    ann = tmp_path / 'data/annotations.json'
    more = f'train_dataloader = dict(dataset=dict(ann_file={str(ann)!r}))'
    report, _ = tool(work_dir('a', more=more))
    finding, = report['same_work']['findings']
    assert 'images of the training' in finding['what']


def test_spread_of_the_baselines_seeds_is_taken(work_dir, tool):
    runs = [work_dir(f'a{i}', seed=i, shift=0.05 + i / 10) for i in range(3)]
    report, _ = tool(*runs, work_dir('b', PEG, config='peg.py'))
    values = report['results']['bbox']['methods']['detr']['numbers']['AP']
    verdict = report['results']['bbox']['comparisons'][0]['verdict']
    assert verdict['seed_spread'] == pytest.approx(
        np.std(list(values['runs'].values()), ddof=1))
    assert verdict['about'] == 'these checkpoints'


def test_copies_are_no_seeds(work_dir, tool):
    found = perturbed(CONTENT, 0)
    runs = [work_dir(f'a{i}', seed=i, found=found) for i in range(3)]
    runs += [work_dir(f'b{i}', PEG, seed=i, config='peg.py')
             for i in range(3)]
    report, _ = tool(*runs)
    comparison, = report['results']['bbox']['comparisons']
    assert comparison['seeds'] == [3, 1]
    assert comparison['verdict']['about'] == 'these checkpoints'
    assert len(report['data']['notes']) == 2


def test_what_differs_within_the_baseline_is_in_every_comparison(
        work_dir, tool):
    runs = [work_dir('a0'), work_dir('a1', seed=1),
            work_dir('b', PEG, shift=0.4, config='peg.py')]
    metrics = json.loads((runs[1] / 'metrics.json').read_text())
    metrics['num_images'] = 3
    (runs[1] / 'metrics.json').write_text(json.dumps(metrics))
    report, _ = tool(*runs)
    assert not report['same_work']['comparable']
    assert not any(report['same_work']['attributable'].values())
    verdict = report['results']['bbox']['comparisons'][0]['verdict']
    assert not verdict['attributable']


def test_one_image_tells_nothing(tmp_path, tool):
    content = dict(CONTENT, images=CONTENT['images'][:1], annotations=[
        a for a in CONTENT['annotations']
        if a['image_id'] == CONTENT['images'][0]['id']])
    write(tmp_path, content, a=perturbed(content, 1, 0.01),
          b=perturbed(content, 2, 0.3))
    report, _ = tool(f'[/a]={tmp_path}/a.json', f'b={tmp_path}/b.json',
                     '--ann', tmp_path / 'annotations.json')
    comparison, = report['results']['bbox']['comparisons']
    assert comparison['verdict']['word'] == "can't tell"
    assert comparison['numbers']['AP'] is None


def test_one_run_only(work_dir, tool):
    report, _ = tool(work_dir('a'), '--published')
    assert report['results']['bbox']['comparisons'] == []
    assert {row['method'] for row in report['published']} >= {'DETR R50'}


def test_classes_and_sizes_without_objects(tmp_path, tool):
    content = copy.deepcopy(CONTENT)
    for ann in content['annotations']:
        ann['area'] = 100.
    write(tmp_path, content, a=perturbed(CONTENT, 1))
    report, _ = tool(f'a={tmp_path}/a.json', '--ann',
                     tmp_path / 'annotations.json')
    numbers = report['results']['bbox']['methods']['a']['numbers']
    assert numbers['APM'] is None and numbers['APL'] is None
    assert report['data']['without_objects']
    page = (tmp_path / 'report/report.html').read_text()
    assert 'n/a' in page


def test_names_are_text(tmp_path, tool):
    name = 'π <script>alert("1")</script> & | _'
    content = copy.deepcopy(CONTENT)
    for category in content['categories']:
        category['name'] = f'{name} {category["id"]}'
    for image in content['images']:
        image['file_name'] = f'{name}.jpg'
    write(tmp_path, content, a=perturbed(CONTENT, 1), b=perturbed(CONTENT, 3))
    tool(f'{name}={tmp_path}/a.json', f'b={tmp_path}/b.json', '--ann',
         tmp_path / 'annotations.json')
    page = (tmp_path / 'report/report.html').read_text()
    assert '<script>alert' not in page
    assert 'π &lt;script&gt;' in page


def test_what_cannot_be_compared(work_dir, refused, tmp_path):
    run = work_dir('a')
    assert 'no such work dir' in refused(tmp_path / 'nowhere')
    assert 'Did you mean detr?' in refused(run, '--baseline', 'detrr')
    assert '--margin' in refused(run, '--margin', '-1')
    other = work_dir('b', PEG, config='peg.py')
    content = copy.deepcopy(CONTENT)
    del content['images'][0]
    text = (other / 'peg.py').read_text()
    data = write(tmp_path / 'other data', content)
    (other / 'peg.py').write_text(text.replace(
        str(tmp_path / 'data'), str(data)))
    line = refused(run, other)
    assert 'other images' in line and '--ann' in line
