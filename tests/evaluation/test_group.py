"""Methods, and their encodings in words."""
import pytest
from mmengine.config import Config
from mmengine.hub import get_config
from work_dirs import CONFIGS, SAMPLE, config, make_run

from mmpe.engine.usage_error import UsageError
from mmpe.evaluation.encodings import encodings_in_words, encodings_of
from mmpe.evaluation.group import find_method, group_runs
from mmpe.evaluation.run import read_run, read_runs


@pytest.mark.parametrize('name, words', [
    ('detr/detr_r50_sine_8xb4-50e_coco', 'sine'),
    ('detr/detr_r50_none_8xb4-50e_coco', 'none'),
    ('detr/detr_r50_none-everywhere_8xb4-50e_coco',
     "none; decoder's keys: none"),
    ('detr/detr_r50_peg_8xb4-50e_coco', 'PEG after layer 0'),
    ('detr/detr_r50_irpe_8xb2-150e_coco',
     'sine + iRPE (product, contextual, k)'),
    ('detr/detr_r50_irpe-clip_8xb2-150e_coco',
     'sine + iRPE (product, contextual, k, clip)'),
    ('deformable_detr/deformable-detr_r50_irpe-bias_16xb2-50e_coco',
     'sine + iRPE (product, bias, k, per head)'),
    ('deformable_detr/deformable-detr_r50_learned-lape_16xb2-50e_coco',
     'learned + LaPE'),
    ('vit/fcos_deit-small-learned_1x_coco', 'learned table'),
    ('vit/deformable-detr_cpvt-small_16xb2-50e_coco',
     'backbone: PEG after layer 0; encoder: sine'),
    ('transformer_neck/fcos_r50_neck-peg_fpn_36e_coco', 'PEG after layer 0'),
    ('transformer_neck/fcos_r50_fpn_36e_coco', 'none'),
])
def test_configs_in_words(name, words):
    assert encodings_in_words(Config.fromfile(CONFIGS / f'{name}.py')) == words


def test_mmdetections_own_config_is_the_sine():
    own = get_config('mmdet::detr/detr_r50_8xb2-150e_coco.py')
    ours = Config.fromfile(CONFIGS / 'detr/detr_r50_sine_8xb4-50e_coco.py')
    assert encodings_in_words(own) == 'sine'
    assert encodings_of(own) == encodings_of(ours)


@pytest.mark.parametrize('items, words', [
    ([dict(type='mmpe.PEG', positions=(-1, ))], 'PEG before layer 0'),
    ([dict(type='mmpe.PEG', positions=(-1, 0, 2), kernel_size=27)],
     '27x27 PEG before layer 0 and after layers 0 and 2'),
    ([dict(type='mmpe.PEG', positions=(0, 1, 2, 3, 4), kind='separable')],
     'separable PEG after layers 0 to 4'),
    ([dict(type='mmpe.LaPE', form='progressive')], 'LaPE (progressive)'),
    ([dict(type='mmpe.SinePositionalEncoding', dims=1)], '1-D sine'),
    ([dict(type='mmpe.ImageRPE', method='cross', target='qk', ratio=1.9,
           layers=[0, 1, 2])],
     'iRPE (cross, contextual, qk, ratio 1.9) in layers 0 to 2'),
    ([dict(type='Gradient', scale=2.0), dict(type='my.Waves')],
     'Gradient (scale=2.0) + Waves'),
    (['nonsense', dict(kernel_size=3)], 'nonsense + None (kernel_size=3)'),
    ([dict(type='mmpe.PEG', positions='0-5')], 'PEG at 0-5'),
    (None, 'None'),
])
def test_lists_in_words(items, words):
    cfg = dict(model=dict(type='mmpe.DETR', positional_encoding=items))
    assert encodings_in_words(cfg) == words


def test_lists_in_the_neck_and_the_backbone_and_by_default():
    peg, sine = [dict(type='mmpe.PEG')], dict(num_feats=4, normalize=True)
    model = dict(
        type='FCOS',
        backbone=dict(type='mmpe.VisionTransformer'),
        neck=[dict(type='mmpe.TransformerNeck', positional_encoding=peg),
              dict(type='FPN')],
        head=dict(pixel_decoder=dict(positional_encoding=sine)))
    assert encodings_in_words(dict(model=model)) == (
        'backbone: learned table; neck: PEG after layer 0; '
        'head pixel_decoder: sine')
    assert encodings_in_words(dict(model=dict(type='FasterRCNN'))) == 'none'
    assert encodings_in_words({}) == 'none'


def test_decoder_keys_in_words():
    model = dict(positional_encoding=[dict(type='mmpe.PEG')],
                 memory_positional_encoding='same')
    assert encodings_in_words(dict(model=model)) == 'PEG after layer 0'
    model['memory_positional_encoding'] = [
        dict(type='mmpe.LearnedPositionalEncoding')]
    assert encodings_in_words(
        dict(model=model)) == "PEG after layer 0; decoder's keys: learned"


def test_seeds_are_one_method(tmp_path):
    dirs = []
    for name in ('sine', 'none'):
        for seed in (0, 1, 2):
            cfg = config(f'quickstart/deformable-detr_r18_{name}_coco16',
                         randomness=dict(seed=seed, deterministic=seed == 1),
                         work_dir=f'work_dirs/{seed}', experiment_name=name,
                         launcher='pytorch' if seed else 'none')
            cfg.train_dataloader.num_workers = seed
            cfg.default_hooks.logger.interval = seed + 1
            dirs.append(make_run(tmp_path / f'{name}{seed}', cfg, name=name))
    methods = group_runs(read_runs([str(d) for d in dirs[::-1]]))
    assert [(m.name, m.encodings, m.seeds) for m in methods] == [
        ('none', 'none', (2, 1, 0)), ('sine', 'sine', (2, 1, 0))]
    assert [r.name for r in methods[0].runs] == ['none2', 'none1', 'none0']


@pytest.mark.parametrize('change', [
    dict(optim_wrapper=dict(optimizer=dict(lr=1e-4))),
    dict(train_cfg=dict(max_epochs=6)),
    dict(load_from='start.pth'),
    dict(model=dict(num_queries=51)),
    dict(model=dict(positional_encoding=[dict(type='mmpe.PEG')])),
    dict(test_dataloader=dict(batch_size=3)),
    dict(custom_hooks=[dict(type='EMAHook')]),
])
def test_other_work_is_another_method(tmp_path, change):
    runs = [read_run(str(make_run(tmp_path / 'a'))),
            read_run(str(make_run(tmp_path / 'b', config(**change))))]
    methods = group_runs(runs)
    # Of one name, as with --cfg-options.
    assert [m.name for m in methods] == ['sine (a)', 'sine (b)']


def test_the_spelling_of_the_sine_makes_no_method(tmp_path):
    cfg = config()
    cfg.model.type = 'DeformableDETR'
    cfg.model.positional_encoding = dict(
        num_feats=128, normalize=True, offset=-0.5)
    del cfg.optim_wrapper.paramwise_cfg.custom_keys['positional_encoding']
    runs = [read_run(str(make_run(tmp_path / 'a'))),
            read_run(str(make_run(tmp_path / 'b', cfg)))]
    assert len(group_runs(runs)) == 1
    cfg.model.positional_encoding.offset = 0.5
    runs[1] = read_run(str(make_run(tmp_path / 'c', cfg)))
    assert len(group_runs(runs)) == 2


def test_runs_without_a_config_are_methods(tmp_path):
    file = tmp_path / 'p.json'
    file.write_text('[]')
    runs = read_runs([f'a={file}', f'b={file}'],
                     str(SAMPLE / 'annotations_train16.json'))
    methods = group_runs(runs)
    assert [(m.name, m.encodings, m.seeds) for m in methods] == [
        ('a', None, (None, )), ('b', None, (None, ))]
    assert find_method(methods, 'b') is methods[1]


def test_a_method_is_found_by_its_run_or_named(tmp_path):
    methods = group_runs([read_run(str(make_run(tmp_path / 'work')))])
    assert find_method(methods, 'sine') is find_method(
        methods, 'work') is methods[0]
    with pytest.raises(UsageError, match='Did you mean sine.*sine, work'):
        find_method(methods, 'snie')
