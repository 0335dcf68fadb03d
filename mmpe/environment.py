"""What mmpe stands on: packages of a fitting version, and mmcv's ops.

``import mmpe`` runs this, so versions are read without importing the packages
they belong to, and torch is imported when an op is called.
"""
import importlib.util
import re
import sys
from functools import partial
from importlib import metadata
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

# Per import name: the lowest version, the first one that is too new, and what
# to install. MMDetection itself refuses an mmcv that doesn't fit, but by a
# bare assertion; these come first.
STOCK = dict(
    mmengine=('0.10', '1', 'mmengine==0.10.7'),
    mmcv=('2.0', '2.2', 'mmcv-lite==2.1.0'),
    mmdet=('3.1', '3.4', 'mmdet==3.3.0'))
# The maintained fork of the same packages keeps the import names.
ONEDL = dict(
    mmengine=('0.10', '1', 'onedl-mmengine==0.10.12'),
    mmcv=('2.0', '3', 'onedl-mmcv==2.3.6'),
    mmdet=('3.4', '4', 'onedl-mmdetection==3.5.1'))

DISTRIBUTIONS = dict(
    mmengine=('mmengine', 'mmengine-lite', 'onedl-mmengine'),
    mmcv=('mmcv', 'mmcv-lite', 'onedl-mmcv'),
    mmdet=('mmdet', 'onedl-mmdetection'))


def check(*required):
    """Check the packages that mmpe stands on.

    Args:
        *required (str): Import names of those that must be there. The others
            may be missing, but not be of a version that doesn't fit.

    Raises:
        ImportError: With a line for each package that is missing, too old or
            too new: its version, the versions that fit, and the command that
            puts it right.
    """
    problems = [
        _problem(package, *wanted, package in required)
        for package, wanted in _stack().items()
    ]
    problems = [p for p in [*problems, _pkg_resources_problem()] if p]
    if problems:
        raise ImportError('\n'.join(problems))


def require_hosts():
    """Check, for a module that uses mmcv and MMDetection, that they are there.

    Raises:
        ImportError: As :func:`check`.
    """
    check('mmengine', 'mmcv', 'mmdet')


def _stack():
    """The versions to hold the packages to: MMDetection decides, then mmcv."""
    forked = _provided_by('onedl-mmdetection') or (
        _provided_by('onedl-mmcv') and not _provided_by('mmdet'))
    return ONEDL if forked else STOCK


def _problem(package, lowest, too_new, requirement, required):
    """What is wrong with a package, in one line; None if nothing is."""
    version = _installed_version(package)
    if version is None and not required:
        return None
    if version and _release(lowest) <= _release(version) < _release(too_new):
        return None
    found = f'{package} {version}' if version else f'no {package}'
    # mmcv and mmcv-lite, or a package and its fork, own the same folder: what
    # is there must go first.
    there = [d for d in DISTRIBUTIONS[package] if _provided_by(d)]
    removal = f'pip uninstall -y {" ".join(there)} && ' if there else ''
    return (f'mmpe needs {package}>={lowest},<{too_new} but found {found}. '
            f'To fix it: {removal}pip install {requirement}')


def _pkg_resources_problem():
    """mmengine reads package versions with what setuptools 82 dropped."""
    if _provided_by('onedl-mmengine') or _find('pkg_resources'):
        return None
    version = _provided_by('setuptools')
    found = f'setuptools {version}' if version else 'no setuptools'
    return ('mmpe needs setuptools<82, because mmengine imports its '
            f'pkg_resources, but found {found}. '
            'To fix it: pip install "setuptools<82"')


def _installed_version(package):
    """Version of the copy that ``import`` finds, None if it finds none.

    The code is asked before the metadata, which a checkout on PYTHONPATH has
    not, and which is out of date once mmcv was installed over mmcv-lite.
    """
    spec = _find(package)
    if spec is None or spec.origin is None:  # no, or an uninstall's left-overs
        return None
    source = Path(spec.origin).with_name('version.py')
    stated = source.is_file() and re.search(
        r"^__version__ = '([^']+)'", source.read_text(), re.MULTILINE)
    if stated:
        return stated[1]
    versions = map(_provided_by, DISTRIBUTIONS[package])
    return next(filter(None, versions), None)


def _provided_by(distribution):
    """Version of an installed distribution, None if it isn't installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _find(module):
    """Where an import would find a module, None if it would not."""
    try:
        return importlib.util.find_spec(module)
    except ImportError:  # an import hook that refuses it
        return None


def _release(version):
    """``'2.1.0rc1'`` as ``(2, 1, 0)``."""
    return tuple(map(int, re.match(r'\d+(?:\.\d+)*', version)[0].split('.')))


def stand_in_for_missing_ops():
    """Put :class:`MissingOps` in place of compiled ops that mmcv hasn't got.

    mmcv.ops loads them on import, and MMDetection imports mmcv.ops, so this
    comes before both.
    """
    # Not find_spec('mmcv._ext'), which would import mmcv.
    mmcv = _find('mmcv')
    if mmcv is None or 'mmcv._ext' in sys.modules:
        return
    if not PathFinder.find_spec('mmcv._ext', mmcv.submodule_search_locations):
        sys.modules['mmcv._ext'] = MissingOps()


class MissingOps(ModuleType):
    """Stands in for ``mmcv._ext``, the compiled ops, where mmcv has none.

    It has a function of any name, which raises when it is called. The ops that
    the DETR family calls on a GPU and never on a CPU are the exception: they
    are there in their torch form, called as the compiled ones are.
    """

    def __init__(self):
        super().__init__('mmcv._ext')
        # No loader: so mmcv's own check_ops_exist answers False, as it should.
        self.__spec__ = ModuleSpec('mmcv._ext', loader=None)

    def __getattr__(self, name):
        if name.startswith('__'):  # inspect and others look into all modules
            raise AttributeError(name)
        return partial(_missing, name)

    @staticmethod
    def ms_deform_attn_forward(value, shapes, starts, locations, weights,
                               im2col_step):
        return _deformable_attention(shapes, value, locations, weights)

    @staticmethod
    def ms_deform_attn_backward(value, shapes, starts, locations, weights,
                                grad_output, grad_value, grad_locations,
                                grad_weights, im2col_step):
        _fill_gradients(
            partial(_deformable_attention, shapes),
            (value, locations, weights), grad_output,
            (grad_value, grad_locations, grad_weights))

    @staticmethod
    def sigmoid_focal_loss_forward(logits, target, weight, output, gamma,
                                   alpha):
        output.copy_(_focal_loss(target, weight, gamma, alpha, logits))

    @staticmethod
    def sigmoid_focal_loss_backward(logits, target, weight, grad_logits, gamma,
                                    alpha):
        _fill_gradients(
            partial(_focal_loss, target, weight, gamma, alpha), (logits, ),
            logits.new_ones(logits.shape), (grad_logits, ))

    @staticmethod
    def get_compiler_version():
        """For mmcv's report on the environment."""
        return 'n/a'

    get_compiling_cuda_version = get_compiler_version


def _missing(name, *args, **kwargs):
    raise RuntimeError(
        f"{name} is one of mmcv's compiled ops, which this mmcv was installed "
        'without. To get them: bash tools/setup_env.sh --ops in a checkout of '
        'mmpe, or install a prebuilt mmcv wheel for your torch and CUDA.')


def _deformable_attention(shapes, value, locations, weights):
    from mmcv.ops.multi_scale_deform_attn import \
        multi_scale_deformable_attn_pytorch
    output = multi_scale_deformable_attn_pytorch(value, shapes, locations,
                                                 weights)
    return output.type_as(value)  # autocast samples in float32


def _focal_loss(target, weight, gamma, alpha, logits):
    """Focal loss of each logit; a target outside the classes is background."""
    import torch
    import torch.nn.functional as F
    if weight.numel():
        _missing('sigmoid_focal_loss with a weight per class')
    classes = torch.arange(logits.size(1), device=logits.device)
    hit = target[:, None] == classes
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    x = torch.where(hit, x, -x)  # how much it says for what is true
    loss = -F.logsigmoid(x) * (-x).sigmoid()**gamma
    return torch.where(hit, alpha * loss, (1 - alpha) * loss).type_as(logits)


def _fill_gradients(function, inputs, grad_output, buffers):
    """Differentiate by running again; compiled ops fill buffers, so do we."""
    import torch
    with torch.enable_grad():
        inputs = [x.detach().requires_grad_() for x in inputs]
        gradients = torch.autograd.grad(
            function(*inputs), inputs, grad_output)
    for buffer, gradient in zip(buffers, gradients):
        buffer.copy_(gradient)
