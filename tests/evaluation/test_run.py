"""What is read of runs."""
import os

import pytest
from mmengine.utils.dl_utils import collect_env
from work_dirs import LOG, SAMPLE, add_test, config, make_run

from mmpe.engine.usage_error import UsageError
from mmpe.evaluation.group import group_runs
from mmpe.evaluation.run import read_run, read_runs

ANN = SAMPLE / 'annotations_train16.json'


def test_a_work_dir(tmp_path):
    cfg = config(randomness=dict(seed=3), load_from='start.pth')
    work_dir = make_run(tmp_path / 'peg', cfg, num_detections=1)
    run = read_run(str(work_dir))
    assert run.name == 'peg' and run.path == work_dir
    assert run.predictions == dict(bbox=work_dir / 'predictions.bbox.json')
    assert run.ann_file.samefile(ANN)
    assert run.images_dir.samefile(SAMPLE / 'images')
    assert run.metrics['coco/bbox_mAP'] == 0.4
    assert run.config == 'sine' and run.seed == 3 and run.epochs == 5
    assert run.cfg.load_from == str(work_dir / 'epoch_5.pth')
    assert run.load_from == run.train_cfg.load_from == 'start.pth'
    assert (run.checkpoint_kind, run.checkpoint_epoch) == ('last', 5)
    assert run.versions == run.train_versions == dict(
        Python='3.11.7', GPU='NVIDIA A100', NVCC='11.8',
        PyTorch='2.13.0+cpu', MMEngine='0.10.7')
    assert run.processes == 2
    assert len(run.classes) == 80 and run.classes[0] == 'person'


def test_masks_are_found(tmp_path):
    work_dir = make_run(tmp_path / 'run')
    (work_dir / 'predictions.segm.json').write_text('[]')
    assert set(read_run(str(work_dir)).predictions) == {'bbox', 'segm'}
    named = read_run(f'a={work_dir}/predictions.bbox.json', str(ANN))
    assert set(named.predictions) == {'bbox', 'segm'}


@pytest.mark.parametrize('checkpoint, kind, epoch', [
    ('epoch_5.pth', 'last', 5),
    ('epoch_3.pth', 'epoch 3', 3),
    ('best_coco_bbox_mAP_epoch_4.pth', 'best', 4),
    ('iter_400.pth', 'iter 400', 400),
    ('detr_r50_8xb2-150e_coco_20221023_153551-436d03e8.pth', None, None),
])
def test_which_checkpoint_it_was(tmp_path, checkpoint, kind, epoch):
    run = read_run(str(make_run(tmp_path / 'run', checkpoint=checkpoint)))
    assert (run.checkpoint_kind, run.checkpoint_epoch) == (kind, epoch)


def test_a_random_seed_is_in_the_log(tmp_path):
    cfg = config()
    cfg.randomness = dict(seed=None)
    assert read_run(str(make_run(tmp_path / 'run', cfg))).seed == 1464837965


def test_the_config_of_the_newest_test_counts(tmp_path):
    work_dir = make_run(tmp_path / 'run')
    add_test(work_dir, config(test_dataloader=dict(batch_size=7)),
             time='20300101_000001')
    add_test(work_dir, config(), time='20290101_000009')  # an earlier one
    assert read_run(str(work_dir)).cfg.test_dataloader.batch_size == 7


def test_a_data_set_in_the_folder_where_it_was_run(tmp_path, monkeypatch):
    (tmp_path / 'there').mkdir()
    cfg = config(work_dir='work_dirs/run')
    (tmp_path / 'there' / 'tests' / 'data').mkdir(parents=True)
    link = tmp_path / 'there' / 'tests' / 'data' / 'coco_sample'
    link.symlink_to(SAMPLE)
    work_dir = make_run(tmp_path / 'there' / 'work_dirs' / 'run', cfg)
    monkeypatch.chdir(tmp_path)
    run = read_run(str(work_dir))
    assert run.ann_file == link / 'annotations_train16.json'
    assert run.images_dir == link / 'images'
    # The one that was given counts all the same.
    assert read_run(str(work_dir), __file__).ann_file.samefile(__file__)


def test_a_wrapped_data_set_and_own_classes(tmp_path):
    cfg = config()
    inner = dict(cfg.test_dataloader.dataset,
                 metainfo=dict(classes=('cat', 'dog')))
    cfg.test_dataloader.dataset = dict(type='RepeatDataset', dataset=inner)
    cfg.test_evaluator = [dict(type='Other'), dict(type='mmdet.CocoMetric')]
    run = read_run(str(make_run(tmp_path / 'run', cfg)))
    assert run.classes == ('cat', 'dog') and run.ann_file.samefile(ANN)


def test_only_predictions_and_a_config(tmp_path):
    work_dir = make_run(tmp_path / 'run')
    for file in work_dir.glob('2*/*.*'):
        file.unlink()
    for file in [*work_dir.glob('2*/vis_data/*'), work_dir / 'metrics.json']:
        file.unlink()
    run = read_run(str(work_dir))
    assert run.config == 'sine' and run.epochs == 5 and run.metrics == {}
    assert run.train_cfg is run.checkpoint is run.checkpoint_kind is None
    assert run.versions == {} and run.processes is None


def test_what_was_cut_off_is_no_error(tmp_path):
    work_dir = make_run(tmp_path / 'run')
    for name in ('metrics.json', '20290101_000000/vis_data/config.py',
                 '20290101_000000/vis_data/scalars.json',
                 '20290101_000000/20290101_000000.log'):
        text = (work_dir / name).read_bytes()
        (work_dir / name).write_bytes(text[:len(text) // 2] + b'\xff')
    run = read_run(str(work_dir))
    assert run.metrics == {} and run.train_cfg is None and run.epochs == 5
    assert run.train_versions['Python'] == '3.11.7'


def test_a_config_is_not_run(tmp_path):
    work_dir = make_run(tmp_path / 'run')
    for file in work_dir.rglob('*.py'):
        file.write_text(file.read_text() + f'\nimport os\nx = os.mkdir('
                        f'{str(tmp_path / "trace")!r})')
    read_run(str(work_dir))
    assert not (tmp_path / 'trace').exists()


def test_named_predictions(tmp_path):
    file = tmp_path / 'a=b.json'
    file.write_text('[]')
    run = read_run(f'<ünï>={file}', str(ANN))
    assert run.name == '<ünï>' and run.predictions == dict(bbox=file)
    assert run.ann_file == ANN and run.cfg is None


@pytest.mark.parametrize('text, ann, reason', [
    ('missing', None, 'no such work dir: missing'),
    ('a=missing.json', None, 'no such file of predictions'),
    (f'={ANN}', None, 'no name before the ='),
    (str(ANN), None, 'needs a name: NAME='),
    (f'a={ANN}', None, 'say with --ann'),
    (f'a={ANN}', 'missing.json', 'no such annotation file: missing.json'),
])
def test_wrong_words_are_named(text, ann, reason):
    with pytest.raises(UsageError, match=reason):
        read_run(text, ann)


def test_an_untested_work_dir_says_how_to_test_it(tmp_path):
    work_dir = make_run(tmp_path / 'a run')
    (work_dir / 'predictions.bbox.json').unlink()
    with pytest.raises(UsageError) as error:
        read_run(str(work_dir))
    assert ('test it first, with python tools/test.py CONFIG CHECKPOINT '
            f"--work-dir '{work_dir}'") in str(error.value)


def test_missing_annotations_are_named(tmp_path):
    cfg = config()
    cfg.test_evaluator.ann_file = 'gone.json'
    work_dir = make_run(tmp_path / 'run', cfg)
    with pytest.raises(UsageError, match='gone.json; say with --ann'):
        read_run(str(work_dir))
    assert read_run(str(work_dir), str(ANN)).ann_file == ANN
    os.rename(work_dir, tmp_path / 'bare')
    for file in (tmp_path / 'bare').rglob('*.py'):
        file.unlink()
    with pytest.raises(UsageError, match='names no annotation file'):
        read_run(str(tmp_path / 'bare'))


def test_names_are_unique(tmp_path):
    dirs = [make_run(tmp_path / name)
            for name in ('a/seed0', 'b/seed0', 'b/seed1', 'c/b/seed0')]
    runs = read_runs([str(d) for d in dirs])
    assert [run.name for run in runs] == [
        'a/seed0', f'{tmp_path.name}/b/seed0', 'seed1', 'c/b/seed0']
    with pytest.raises(UsageError, match='given 2 times'):
        read_runs([str(dirs[0]), f'{dirs[0]}/'])
    file = f'{dirs[0]}/predictions.bbox.json'
    with pytest.raises(UsageError, match='given 2 times'):
        read_runs([f'a={file}', f'a={file}'], str(ANN))
    assert len(read_runs([f'a={file}', f'b={file}'], str(ANN))) == 2


def test_files_under_one_name_are_seeds(tmp_path):
    files = [make_run(tmp_path / name) / 'predictions.bbox.json'
             for name in ('x', 'y', 'z')]
    runs = read_runs([f'a={files[0]}', f'b={files[1]}', f'a={files[2]}'],
                     str(ANN))
    assert [run.name for run in runs] == ['a 1', 'b', 'a 2']
    methods = group_runs(runs)
    assert [m.name for m in methods] == ['a', 'b']
    assert [len(m.runs) for m in methods] == [2, 1]


def test_the_log_is_like_those_of_mmengine():
    env = collect_env()
    for key in ('Python', 'PyTorch', 'MMEngine'):
        assert key in env and f'    {key}: ' in LOG
