"""Work dirs as tools/train.py and tools/test.py leave them."""
import copy
import json
from functools import lru_cache
from pathlib import Path

from mmengine.config import Config

SAMPLE = Path(__file__).parents[1] / 'data' / 'coco_sample'
CONFIGS = Path(__file__).parents[2] / 'configs'
# Of a quickstart and of a DETR that was killed and resumed, shortened.
QUICKSTART = """\
{"base_lr": 0.00044, "lr": 0.00044, "data_time": 0.0069, "grad_norm": 17.7, \
"loss": 18.58, "loss_cls": 1.78, "time": 0.45, "epoch": 1, "iter": 18, \
"step": 18}
{"base_lr": 0.0005, "lr": 0.0005, "data_time": 0.0057, "grad_norm": 22.8, \
"loss": 16.59, "loss_cls": 1.68, "time": 0.43, "epoch": 1, "iter": 36, \
"step": 36}
{"base_lr": 0.0005, "lr": 0.0005, "data_time": 0.0048, "grad_norm": 26.6, \
"loss": 14.61, "loss_cls": 1.49, "time": 0.31, "epoch": 2, "iter": 54, \
"step": 54}
"""
LOG = """\
2026/11/30 00:15:05 - mmengine - INFO -\x20
------------------------------------------------------------
System environment:
    sys.platform: linux
    Python: 3.11.7 (main, May  9 2026, 07:35:25) [GCC 12.2.0]
    CUDA available: True
    numpy_random_seed: 1464837965
    GPU 0,1: NVIDIA A100
    NVCC: Cuda compilation tools, release 11.8, V11.8.89
    PyTorch: 2.13.0+cpu
    PyTorch compiling details: PyTorch built with:
  - GCC 13.3
    MMEngine: 0.10.7

Runtime environment:
    cudnn_benchmark: False
    seed: 1464837965
    Distributed launcher: pytorch
    GPU number: 2
------------------------------------------------------------
"""


@lru_cache(maxsize=None)
def _from_file(name):
    return Config.fromfile(CONFIGS / f'{name}.py')


def config(name='quickstart/deformable-detr_r18_sine_coco16', **settings):
    cfg = copy.deepcopy(_from_file(name))
    cfg.merge_from_dict(settings)
    return cfg


def write_config(cfg, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    # As MMEngine has it, but not laid out, which takes a second.
    path.write_text('\n'.join(f'{key} = {value!r}'
                              for key, value in cfg.to_dict().items()))


def add_training(folder, cfg, scalars=QUICKSTART, log=LOG, resume=False):
    """A session of tools/train.py in the folder named by its time."""
    cfg = Config(dict(cfg.to_dict(), resume=resume))
    write_config(cfg, folder / 'vis_data' / 'config.py')
    (folder / 'vis_data' / 'scalars.json').write_text(scalars)
    (folder / f'{folder.name}.log').write_text(log)


def add_test(work_dir, cfg, time='20300101_000000', name='sine',
             checkpoint='epoch_5.pth', predictions=(), **metrics):
    """A session of tools/test.py, and what it leaves in the work dir."""
    cfg = Config(dict(
        cfg.to_dict(), load_from=f'{work_dir}/{checkpoint}', resume=False))
    folder = work_dir / time
    write_config(cfg, folder / 'vis_data' / 'config.py')
    write_config(cfg, work_dir / f'{name}.py')
    (folder / f'{time}.json').write_text('{"coco/bbox_mAP": 0.4}')
    (folder / f'{time}.log').write_text(LOG)
    (work_dir / 'predictions.bbox.json').write_text(
        json.dumps(list(predictions)))
    (work_dir / 'metrics.json').write_text(json.dumps({
        'coco/bbox_mAP': 0.4, 'config': name,
        'checkpoint': f'{work_dir}/{checkpoint}', 'num_images': 16, **metrics
    }))


def make_run(work_dir, cfg=None, name='sine', scalars=QUICKSTART, **test):
    """A whole run."""
    cfg = config() if cfg is None else cfg
    work_dir.mkdir(parents=True)
    add_training(work_dir / '20290101_000000', cfg, scalars)
    add_test(work_dir, cfg, name=name, **test)
    return work_dir
