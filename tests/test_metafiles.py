"""What ``mim`` and MMEngine's inferencers read of our configs."""
import re
from pathlib import Path

import pytest
import yaml
from mmengine.config import Config
from mmengine.config.utils import _get_cfg_metainfo
from mmengine.infer import BaseInferencer

ROOT = Path(__file__).parents[1]
# The quickstart's need the checkout.
FOLDERS = sorted({p.parent.name for p in ROOT.glob('configs/*/*.py')} -
                 {'quickstart'})
CONFIGS = [p for f in FOLDERS for p in sorted(ROOT.glob(f'configs/{f}/*.py'))]
MODELS = list(BaseInferencer._get_models_from_metafile(str(ROOT)))


def results(model):
    return [metric for result in model.get('Results', [])
            for metric in result['Metrics'].values()]


def test_index_lists_every_metafile():
    index = yaml.safe_load((ROOT / 'model-index.yml').read_text())
    assert index == dict(
        Import=[f'configs/{folder}/metafile.yml' for folder in FOLDERS])


def test_each_config_has_one_entry():
    assert sorted(m['Config'] for m in MODELS) == sorted(
        str(p.relative_to(ROOT)) for p in CONFIGS)
    assert [m['Name'] for m in MODELS] == [
        Path(m['Config']).stem for m in MODELS
    ]
    # Of two models of one name an inferencer would take the first.
    assert len({m['Name'].lower() for m in MODELS}) == len(MODELS)


@pytest.mark.parametrize('path', CONFIGS, ids=lambda p: p.stem)
def test_entry_says_what_the_config_does(path):
    entry = _get_cfg_metainfo(
        str(ROOT / 'mmpe'), f'{path.parent.name}/{path.name}')
    cfg = Config.fromfile(path)
    length = ({'Iterations': cfg.train_cfg.max_iters}
              if 'max_iters' in cfg.train_cfg else
              {'Epochs': cfg.train_cfg.max_epochs})
    gpus = re.search(r'_(\d+)xb(\d+)', path.stem)
    if gpus:
        assert int(gpus[2]) == cfg.train_dataloader.batch_size
        batch_size = int(gpus[1]) * int(gpus[2])
    else:
        batch_size = cfg.auto_scale_lr.base_batch_size
    metadata = dict(entry['Metadata'])
    data = metadata.pop('Training Data', None)
    assert metadata == {**length, 'Batch Size': batch_size}
    if data:
        assert data.lower() in path.stem
    # None was trained by us. The key is there because an inferencer that is
    # given the name of a model asks for it, also beside weights of the user's.
    assert entry['Weights'] is None


@pytest.mark.parametrize('folder', FOLDERS)
def test_collections_are_those_of_the_models(folder):
    file = yaml.safe_load(
        (ROOT / f'configs/{folder}/metafile.yml').read_text())
    names = [c['Name'] for c in file['Collections']]
    assert len(set(names)) == len(names)
    assert set(names) == {m['In Collection'] for m in file['Models']}
    for collection in file['Collections']:
        assert collection['README'] == f'configs/{folder}/README.md'
        assert set(collection['Paper']) == {'Title', 'URL'}
        assert collection['Paper']['URL'].startswith('https://arxiv.org/abs/')


def test_no_collection_is_in_two_folders():
    folder = {}
    for model in MODELS:
        name = model['In Collection']
        assert folder.setdefault(name, Path(model['Config']).parent) == Path(
            model['Config']).parent


def expand(text):
    """As a shell expands ``a-{b,c}``."""
    braces = re.search(r'\{([^{}]*)\}', text)
    if not braces:
        return [text]
    return [
        name for choice in braces[1].split(',')
        for name in expand(text[:braces.start()] + choice +
                           text[braces.end():])
    ]


def published(folder):
    """Numbers that the tables of a folder's README have, by config stem.
    Those in brackets are of another model or recipe."""
    numbers, suffix, config, result = {}, None, None, None
    for line in (ROOT / f'configs/{folder}/README.md').read_text().split('\n'):
        cells = [cell.strip() for cell in line.split('|')[1:-1]]
        if not cells:
            config = None
        elif config is None:
            titles = [re.match(r'(config)?(AP|top-1)?', c) for c in cells]
            config = [bool(t[1]) for t in titles].index(True)
            result = [i for i, t in enumerate(titles) if t[2]]
            suffix = re.search(r'`\.\.\.(.*)\.py`', cells[config])
        elif result and cells[config]:
            names = [
                name for quoted in re.findall('`(.+?)`', cells[config])
                for name in expand(quoted)
            ]
            for name, number in zip(names, cells[result[0]].split(',')):
                if re.fullmatch(r'[\d.]+', number.strip()):
                    stem = (name[:-3] if name.endswith('.py') else name +
                            suffix[1])
                    numbers[stem] = float(number)
    return numbers


@pytest.mark.parametrize('folder', FOLDERS)
def test_results_are_those_of_the_readme(folder):
    entries = {
        m['Name']: results(m)
        for m in MODELS if Path(m['Config']).parent.name == folder
    }
    assert {k: v for k, v in entries.items() if v
            } == {k: [v] for k, v in published(folder).items()}


def test_there_are_results_of_detectors_and_of_classifiers():
    """Or the test above would compare nothing with nothing."""
    assert published('detr')['detr_r50_sine_8xb4-50e_coco'] == 33.7
    assert published('classification')['cpvt-tiny_4xb256_in1k'] == 72.4
    assert len(published('classification')) > 20


def test_no_result_is_of_a_form_that_is_not_offered():
    """CPVT's PEG in a detector lets padding in; ours can't."""
    assert [m['Name'] for m in MODELS
            if results(m) and re.search('[-_]peg_.*_coco', m['Name'])] == []
