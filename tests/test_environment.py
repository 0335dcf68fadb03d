"""What ``import mmpe`` says about the packages around it, and mmcv's ops."""
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
import torch
from mmcv.ops import focal_loss as mmcv_focal_loss
from mmcv.ops import multi_scale_deform_attn as mmcv_attention
from mmdet.models.losses.focal_loss import py_sigmoid_focal_loss

from mmpe.environment import MissingOps

ROOT = Path(__file__).parents[1]
MODULES = {
    'mmcv-lite': 'mmcv',
    'onedl-mmengine': 'mmengine',
    'onedl-mmcv': 'mmcv',
    'onedl-mmdetection': 'mmdet',
    'setuptools': 'pkg_resources'
}
STOCK = {
    'mmengine': '0.10.7',
    'mmcv-lite': '2.1.0',
    'mmdet': '3.3.0',
    'setuptools': '81.0.0'
}
ONEDL = {
    'onedl-mmengine': '0.10.12',
    'onedl-mmcv': '2.3.6',
    'onedl-mmdetection': '3.5.1'
}


def install(folder, distributions, metadata=True):
    """Lay out packages that have a version and nothing else, but MMEngine
    its dict of packages with configs."""
    for name, version in distributions.items():
        package = folder / MODULES.get(name, name)
        package.mkdir()
        (package / '__init__.py').touch()
        # The fork's packages ask the metadata for their own version.
        stated = (f"version('{name}')"
                  if name.startswith('onedl') else f"'{version}'")
        (package / 'version.py').write_text(f'__version__ = {stated}\n')
        if MODULES.get(name, name) == 'mmengine':
            (package / 'config').mkdir()
            (package / 'config/utils.py').write_text('MODULE2PACKAGE = {}\n')
        if metadata:
            info = folder / f'{name.replace("-", "_")}-{version}.dist-info'
            info.mkdir()
            (info / 'METADATA').write_text(
                f'Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n')


def run(code, *options, path=()):
    """Run code in another Python; what it prints, or the error's lines."""
    paths = [*map(str, path), str(ROOT)]
    code = f'import sys; sys.path[:0] = {paths}\n{code}'
    done = subprocess.run([sys.executable, *options, '-c', code],
                          capture_output=True,
                          text=True)
    if done.returncode == 0:
        return done.stdout
    return done.stderr[done.stderr.rindex('Error: '):][len('Error: '):]


def run_isolated(folder, code):
    """Run code where the packages in a folder are the only ones."""
    return run(code, '-I', '-S', path=[folder])


HOSTS = 'import mmpe; mmpe.environment.require_hosts()'


@pytest.mark.parametrize('stack', [STOCK, ONEDL], ids=['stock', 'onedl'])
def test_fitting_versions_pass(tmp_path, stack):
    install(tmp_path, stack)
    assert run_isolated(tmp_path, HOSTS) == ''


def test_checkouts_on_the_path_need_no_metadata(tmp_path):
    install(tmp_path, STOCK, metadata=False)
    assert run_isolated(tmp_path, HOSTS) == ''


@pytest.mark.parametrize('base, changes, message', [
    (STOCK, {'mmengine': None},
     'mmpe needs mmengine>=0.10,<1 but found no mmengine. '
     'To fix it: pip install mmengine==0.10.7'),
    (STOCK, {'mmengine': '0.9.1'},
     'mmpe needs mmengine>=0.10,<1 but found mmengine 0.9.1. '
     'To fix it: pip uninstall -y mmengine && pip install mmengine==0.10.7'),
    (STOCK, {'mmcv-lite': None, 'mmcv': '2.2.0'},
     'mmpe needs mmcv>=2.0,<2.2 but found mmcv 2.2.0. '
     'To fix it: pip uninstall -y mmcv && pip install mmcv-lite==2.1.0'),
    (STOCK, {'mmcv-lite': None, 'onedl-mmcv': '2.3.6'},
     'mmpe needs mmcv>=2.0,<2.2 but found mmcv 2.3.6. '
     'To fix it: pip uninstall -y onedl-mmcv && pip install mmcv-lite==2.1.0'),
    (STOCK, {'mmdet': '2.28.2'},
     'mmpe needs mmdet>=3.1,<3.4 but found mmdet 2.28.2. '
     'To fix it: pip uninstall -y mmdet && pip install mmdet==3.3.0'),
    (ONEDL, {'onedl-mmdetection': '4.0.0'},
     'mmpe needs mmdet>=3.4,<4 but found mmdet 4.0.0. To fix it: pip uninstall'
     ' -y onedl-mmdetection && pip install onedl-mmdetection==3.5.1'),
    (STOCK, {'setuptools': None},
     'mmpe needs setuptools<82, because mmengine imports its pkg_resources, '
     'but found no setuptools. To fix it: pip install "setuptools<82"'),
])  # yapf: disable
def test_import_names_what_does_not_fit(tmp_path, base, changes, message):
    stack = {**base, **changes}
    install(tmp_path, {k: v for k, v in stack.items() if v})
    assert run_isolated(tmp_path, 'import mmpe').strip() == message


def test_new_setuptools_is_named(tmp_path):
    install(tmp_path, {**STOCK, 'setuptools': '82.0.1'})
    (tmp_path / 'pkg_resources').rename(tmp_path / 'setuptools')
    assert 'but found setuptools 82.0.1.' in run_isolated(
        tmp_path, 'import mmpe')


def test_hosts_missing_is_an_error_only_to_those_who_need_them(tmp_path):
    install(tmp_path, {k: STOCK[k] for k in ('mmengine', 'setuptools')})
    assert run_isolated(tmp_path, 'import mmpe') == ''
    mmcv, mmdet = run_isolated(tmp_path, HOSTS).splitlines()
    assert mmcv.endswith('no mmcv. To fix it: pip install mmcv-lite==2.1.0')
    assert mmdet.endswith('no mmdet. To fix it: pip install mmdet==3.3.0')


def test_folder_left_by_an_uninstall_is_no_package(tmp_path):
    install(tmp_path, STOCK)
    for file in (tmp_path / 'mmcv').iterdir():
        file.unlink()
    assert 'found no mmcv' in run_isolated(tmp_path, HOSTS)


def test_position_does_without_mmcv_and_mmdet():
    code = '''
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('mmcv', 'mmdet'):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import mmpe.position
'''
    assert run(code) == ''


def test_compiled_ops_are_left_alone(tmp_path):
    install(tmp_path, STOCK)
    code = "import mmpe; print('mmcv._ext' in sys.modules)"
    assert run_isolated(tmp_path, code) == 'True\n'
    (tmp_path / 'mmcv' / f'_ext{EXTENSION_SUFFIXES[0]}').touch()
    assert run_isolated(tmp_path, code) == 'False\n'


def test_mmdet_imports_without_compiled_ops():
    code = '''
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *args: (
    None if name == 'mmcv._ext' else find(name, *args))
import mmpe
import mmdet.models
from mmcv.utils.env import collect_env
from mmcv.utils.ext_loader import check_ops_exist
print(check_ops_exist(), collect_env()['MMCV Compiler'])
'''
    assert run(code) == 'False n/a\n'


def test_missing_op_raises_when_called():
    nms = MissingOps().nms
    with pytest.raises(RuntimeError, match="^nms is one of mmcv's .* --ops"):
        nms(torch.rand(3, 4), torch.rand(3), iou_threshold=0.5)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64, torch.half])
def test_deformable_attention_takes_its_torch_form(monkeypatch, dtype):
    monkeypatch.setattr(mmcv_attention, 'ext_module', MissingOps())
    torch.manual_seed(0)
    shapes = torch.tensor([(5, 7), (3, 4)])
    starts = torch.tensor([0, 35])
    value = torch.randn(2, 47, 4, 8, dtype=dtype)
    locations = torch.rand(2, 6, 4, 2, 3, 2, dtype=dtype) * 1.2 - 0.1
    weights = torch.rand(2, 6, 4, 2, 3, dtype=dtype)
    tensors = (value, locations, weights)

    def differentiate(function):
        inputs = [x.clone().requires_grad_() for x in tensors]
        output = function(*inputs)
        return output, *torch.autograd.grad(output.square().sum(), inputs)

    got = differentiate(
        lambda v, p, w: mmcv_attention.MultiScaleDeformableAttnFunction.apply(
            v, shapes, starts, p, w, 64))
    expected = differentiate(
        lambda v, p, w: mmcv_attention.multi_scale_deformable_attn_pytorch(
            v, shapes, p, w))
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize('reduction', ['none', 'sum', 'mean'])
def test_focal_loss_takes_its_torch_form(monkeypatch, reduction):
    monkeypatch.setattr(mmcv_focal_loss, 'ext_module', MissingOps())
    torch.manual_seed(0)
    logits = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 4, 5, 2, 5, 1])  # 5 is background
    one_hot = torch.nn.functional.one_hot(target, 6)[:, :5]
    got = mmcv_focal_loss.sigmoid_focal_loss(logits, target, 2., .25, None,
                                             reduction)
    expected = py_sigmoid_focal_loss(logits, one_hot, reduction='none')
    if reduction != 'none':
        expected = expected.sum()
    if reduction == 'mean':  # mmcv's is over the boxes
        expected = expected / len(logits)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(
        *(torch.autograd.grad(loss.sum(), logits) for loss in (got, expected)))


def test_focal_loss_with_class_weights_says_that_it_needs_the_op(monkeypatch):
    monkeypatch.setattr(mmcv_focal_loss, 'ext_module', MissingOps())
    with pytest.raises(RuntimeError, match='with a weight per class'):
        mmcv_focal_loss.sigmoid_focal_loss(
            torch.rand(2, 3), torch.tensor([0, 1]), 2., .25, torch.ones(3))
