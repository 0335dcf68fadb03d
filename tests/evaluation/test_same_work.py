"""Whether runs did the same work."""
import json

import pytest
from work_dirs import LOG, SAMPLE, config, make_run

from mmpe.engine.usage_error import UsageError
from mmpe.evaluation.group import group_runs
from mmpe.evaluation.run import read_run, read_runs
from mmpe.evaluation.same_work import same_work

ANN = SAMPLE / 'annotations_train16.json'


def compare(tmp_path, cfg=None, log=None, **test):
    """What a run of the sine differs in from another config."""
    cfg = config('quickstart/deformable-detr_r18_none_coco16'
                 ) if cfg is None else cfg
    dirs = [make_run(tmp_path / 'a'),
            make_run(tmp_path / 'b', cfg, name='other', **test)]
    if log is not None:
        for file in dirs[1].glob('2*/*.log'):
            file.write_text(log)
    methods = group_runs(read_runs([str(d) for d in dirs]))
    return same_work(methods, methods[0])


@pytest.mark.parametrize('name', ['none', 'peg', 'irpe', 'lape'])
def test_the_list_of_encodings_is_no_other_work(tmp_path, name):
    cfg = config(f'quickstart/deformable-detr_r18_{name}_coco16')
    assert compare(tmp_path, cfg) == []


def test_spelling_is_no_other_work(tmp_path):
    cfg = config(work_dir='x', experiment_name='y', log_level='DEBUG')
    cfg.model.type = 'DeformableDETR'
    cfg.model.positional_encoding = dict(num_feats=128)
    del cfg.optim_wrapper.paramwise_cfg.custom_keys['positional_encoding']
    cfg.model.memory_positional_encoding = None
    cfg.some_variable = 1
    assert compare(tmp_path, cfg) == []


@pytest.mark.parametrize('folder, base, other', [
    ('detr', 'detr_r50_sine_8xb4-50e_coco', 'detr_r50_peg_8xb4-50e_coco'),
    ('vit', 'fcos_deit-small-sine_1x_coco', 'fcos_deit-small-learned_1x_coco'),
    ('transformer_neck', 'fcos_r50_neck-sine_fpn_36e_coco',
     'fcos_r50_neck-irpe_fpn_36e_coco'),
])
def test_our_configs_differ_in_encodings_only(tmp_path, folder, base, other):
    runs = []
    for name in (base, other):
        work_dir = make_run(
            tmp_path / name, config(f'{folder}/{name}'), name=name)
        runs.append(read_run(str(work_dir), str(ANN)))
    methods = group_runs(runs)
    assert len(methods) == 2
    assert same_work(methods, methods[0]) == []


@pytest.mark.parametrize('change, what, values', [
    (dict(model=dict(test_cfg=dict(max_per_img=300))), 'max_per_img',
     ('100', '300')),
    (dict(test_dataloader=dict(batch_size=4)), 'test batch size',
     ('1', '4')),
    (dict(load_from='start.pth'), 'initial weights',
     ('none loaded', 'start.pth')),
    (dict(optim_wrapper=dict(optimizer=dict(lr=1e-4))),
     'optim_wrapper.optimizer.lr', ('0.0005', '0.0001')),
    (dict(optim_wrapper=dict(paramwise_cfg=dict(custom_keys={
        'norm.weight': dict(decay_mult=0)}))),
     'optim_wrapper.paramwise_cfg.custom_keys.norm.weight',
     ('not set', "{'decay_mult': 0}")),
    (dict(model=dict(num_queries=60)), 'model.num_queries', ('50', '60')),
    ({'model.backbone.init_cfg': 'r18.pth'}, 'model.backbone.init_cfg',
     ('None', 'r18.pth')),
])
def test_what_differs_is_named(tmp_path, change, what, values):
    finding, = compare(tmp_path, config(**change))
    assert (finding.level, finding.what) == ('other', what)
    assert finding.values == dict(a=values[0], b=values[1])
    assert finding.differs == ('other', )


def test_the_test_scale(tmp_path):
    cfg = config()
    cfg.test_dataloader.dataset.pipeline[2] = dict(
        type='Resize', scale=(448, 336))
    finding, = compare(tmp_path, cfg)
    assert (finding.level, finding.what) == ('other', 'test scale')
    assert finding.values == dict(
        a='224x168', b='448x336, whatever the aspect')


def test_the_schedule_and_the_checkpoint(tmp_path):
    cfg = config(train_cfg=dict(max_epochs=9))
    found = {f.what: f.values
             for f in compare(tmp_path, cfg, checkpoint='epoch_5.pth')}
    assert found == dict(checkpoint=dict(a='last', b='epoch 5'),
                         epochs=dict(a='5', b='9'))
    finding, = compare(tmp_path / 'x',
                       checkpoint='best_coco_bbox_mAP_epoch_3.pth')
    assert finding.values == dict(a='last', b='best')


def test_versions_and_processes_of_the_log(tmp_path):
    log = LOG.replace('PyTorch: 2.13.0', 'PyTorch: 2.1.0').replace(
        'A100', 'H200').replace('GPU number: 2', 'GPU number: 8')
    found = {f.what: f for f in compare(tmp_path, log=log)}
    assert found['PyTorch'].values == dict(a='2.13.0+cpu', b='2.1.0+cpu')
    assert found['PyTorch'].level == 'other'
    assert found['GPU'].level == 'note'
    assert found['training batch size'].values == dict(a='4', b='16')
    assert len(found) == 3


def test_no_log_is_no_difference(tmp_path):
    assert compare(tmp_path, log='') == []


def with_annotations(tmp_path, change):
    content = json.loads(ANN.read_text())
    change(content)
    tmp_path.mkdir(exist_ok=True)
    file = tmp_path / 'ann.json'
    file.write_text(json.dumps(content))
    cfg = config(randomness=dict(seed=1))
    cfg.test_evaluator.ann_file = str(file)
    return compare(tmp_path, cfg)


def test_a_copy_of_the_annotations_is_the_same(tmp_path):
    def shuffle(content):
        content['annotations'].reverse()
        content['info'] = 'copied'
    assert with_annotations(tmp_path, shuffle) == []


@pytest.mark.parametrize('part, what', [
    ('images', 'images'), ('categories', 'categories'),
    ('annotations', 'annotations')])
def test_other_annotations_are_an_error(tmp_path, part, what):
    finding, = with_annotations(tmp_path, lambda c: c[part].pop())
    assert (finding.level, finding.what) == ('error', what)
    assert finding.values['a'] != finding.values['b']


def test_a_moved_box_is_an_error(tmp_path):
    def move(content):
        content['annotations'][0]['bbox'][0] += 1
    finding, = with_annotations(tmp_path, move)
    assert (finding.level, finding.what) == ('error', 'annotations')


def test_annotations_that_are_none(tmp_path):
    def spoil(content):
        content['images'] = 3
    with pytest.raises(UsageError, match='ann.json is no annotation file'):
        with_annotations(tmp_path, spoil)


def test_fewer_images_or_other_classes_are_an_error(tmp_path):
    finding, = compare(tmp_path, num_images=7)
    assert (finding.level, finding.what) == ('error', 'number of images')
    cfg = config()
    cfg.test_dataloader.dataset.metainfo = dict(classes=('cat', ))
    levels = {f.what: f.level for f in compare(tmp_path / 'x', cfg)}
    assert levels['classes'] == 'error'


def test_long_values_that_differ_look_different(tmp_path):
    cfg = config()
    cfg.param_scheduler.append(
        dict(type='ConstantLR', begin=0, end=1, factor=0.5))
    finding, = compare(tmp_path, cfg)
    a, b = finding.values.values()
    assert a != b and len(a) < 200 and len(b) < 200


def test_of_three_methods_those_that_differ(tmp_path):
    changes = [dict(), dict(model=dict(num_queries=60)),
               dict(model=dict(positional_encoding=[]))]
    dirs = [make_run(tmp_path / f'r{i}', config(**change), name=f'm{i}')
            for i, change in enumerate(changes)]
    methods = group_runs(read_runs([str(d) for d in dirs]))
    finding, = same_work(methods, methods[2])
    assert finding.differs == ('m1', )
    assert finding.values == dict(r0='50', r1='60', r2='50')
    assert set(same_work(methods, methods[1])[0].differs) == {'m0', 'm2'}


def test_seeds_that_did_other_work_or_are_the_same(tmp_path):
    cfgs = [config(randomness=dict(seed=seed)) for seed in (0, 1, 1)]
    dirs = [make_run(tmp_path / f'r{i}', cfg, checkpoint=(
        'best_x_epoch_4.pth' if i == 1 else 'epoch_5.pth'))
            for i, cfg in enumerate(cfgs)]
    methods = group_runs(read_runs([str(d) for d in dirs]))
    assert len(methods) == 1
    other, note = same_work(methods, methods[0])
    assert (other.what, other.differs) == ('checkpoint', ('sine', ))
    assert (note.level, note.what, note.values) == (
        'note', 'the same seed more than once', dict(r0='0', r1='1', r2='1'))


def test_a_run_without_a_config_is_noted(tmp_path):
    work_dir = make_run(tmp_path / 'a')
    runs = read_runs(
        [str(work_dir), f'bare={work_dir}/predictions.bbox.json'], str(ANN))
    methods = group_runs(runs)
    for baseline in methods:
        finding, = same_work(methods, baseline)
        assert (finding.level, finding.what) == ('note', 'config')
        assert finding.differs == ('bare', )
