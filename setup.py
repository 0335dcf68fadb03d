import re
from pathlib import Path

from setuptools import find_packages, setup

source = Path(__file__).with_name('mmpe') / '__init__.py'
version = re.search(r"__version__ = '(.+)'", source.read_text())[1]
# mmpe/.mim links to folders of the checkout; a wheel gets the files. Of the
# tools, those that don't need a checkout.
mim = [
    'model-index.yml', 'configs/*/*.py', 'configs/*/metafile.yml',
    'configs/*/README.md', 'tools/train.py', 'tools/test.py',
    'tools/import_checkpoint.py', 'tools/report*.py', 'tools/benchmark*.py',
    'tools/launch.sh', 'tools/dist_*.sh', 'tools/slurm_*.sh'
]

setup(
    name='mmpe',
    version=version,
    description='Position encodings for detection and segmentation '
    'transformers: a plugin for MMDetection',
    license='Apache-2.0',
    packages=find_packages(include=['mmpe', 'mmpe.*']),
    package_data={
        'mmpe': [f'.mim/{pattern}' for pattern in mim],
        'mmpe.evaluation': ['templates/*']
    },
    exclude_package_data={'mmpe': ['.mim/configs/quickstart/*']},
    python_requires='>=3.10',
    # MMDetection, MMEngine and MMCV come as extras, for they come twice: the
    # stock packages and their maintained fork have the same import names, and
    # one required here would be installed over the other. mmpe says on import
    # what is missing (mmpe/environment.py, which has the same versions).
    install_requires=[
        'numpy', 'torch>=2.1', 'pycocotools', 'jinja2', 'matplotlib', 'rich',
        'scipy'
    ],
    extras_require={
        'stock': ['mmengine>=0.10,<1', 'mmdet>=3.1,<3.4', 'setuptools<82'],
        # MMCV is in neither, because what pip builds from the sources of mmcv
        # and onedl-mmcv lacks the compiled ops and doesn't say so.
        'onedl': ['onedl-mmengine>=0.10,<1', 'onedl-mmdetection>=3.4,<4'],
        'lite': ['mmcv-lite>=2.0,<2.2'],
        'seg': ['mmsegmentation>=1.2,<2', 'ftfy', 'regex', 'prettytable'],
        # With the torchvision of your torch, which these don't ask for.
        'cls': [
            'mmpretrain>=1.2,<2', 'importlib_metadata<8', 'einops', 'mat4py',
            'modelindex'
        ],
        'tests': ['pytest', 'hypothesis', 'matplotlib'],
    })
