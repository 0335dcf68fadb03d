"""What of a run's configs decides its result, in one spelling.

MMEngine's runner uses a few top-level keys only; other variables of a config
act through these. Left out is what names a run, what only its speed or its
logs depend on, the seed, where files lie, and the position encodings, which
are compared by themselves.
"""
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any, Dict, Mapping, Optional

from .encodings import without_encodings
from .run import Run
from .tested_data import dataset_of, joined, setting

_TRAINING = ('train_dataloader', 'train_cfg', 'optim_wrapper',
             'param_scheduler', 'auto_scale_lr', 'custom_hooks',
             'default_hooks', 'randomness')
_TEST = ('model', 'test_dataloader', 'test_evaluator', 'test_cfg',
         'data_preprocessor')
# Wherever they are.
_NAMELESS = {
    '_scope_', 'backend_args', 'file_client_args', 'data_root',
    'num_workers', 'persistent_workers', 'pin_memory', 'prefetch_factor',
    'worker_init_fn', 'outfile_prefix', 'with_cp', 'num_cp'
}
# By the part of a config that they are in.
_WITHOUT_EFFECT = dict(
    train_cfg={'val_interval', 'val_begin', 'dynamic_intervals'},
    test_evaluator={'ann_file', 'format_only', 'classwise', 'metric'},
    default_hooks={
        'runtime_info', 'timer', 'logger', 'param_scheduler', 'checkpoint',
        'sampler_seed', 'visualization'
    },
    randomness={'seed', 'diff_rank_seed', 'deterministic'})


def settings_of(run: Run) -> Optional[Dict[str, Any]]:
    """The settings of a run's training and test; None without a config."""
    train = run.any_cfg
    if train is None:
        return None
    test = train if run.cfg is None else run.cfg
    whole = {
        **{key: train.get(key) for key in _TRAINING},
        **{key: test.get(key) for key in _TEST}
    }
    settings = {key: _part(key, value) for key, value in whole.items()}
    settings['custom_hooks'] = [
        hook for hook in settings['custom_hooks'] or []
        if not str(setting(hook, 'type')).startswith('mmpe.engine.')
    ]
    if not setting(settings, 'auto_scale_lr', 'enable'):
        settings['auto_scale_lr'] = None
    model = settings['model']
    if isinstance(model, dict) and isinstance(model.get('type'), str):
        # Ours is MMDetection's with a list.
        model['type'] = model['type'].removeprefix('mmpe.')
    _forget_decay_of_encodings(settings)
    _name_by_content(settings, train, test)
    return {key: value for key, value in settings.items()
            if value not in (None, {}, [])}


def _part(key: str, value: Any) -> Any:
    value = _plain(without_encodings(value))
    dropped = _WITHOUT_EFFECT.get(key, set())
    if isinstance(value, list):
        return [_part(key, item) if dropped else item for item in value]
    if isinstance(value, dict):
        return {k: v for k, v in value.items() if k not in dropped}
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if k not in _NAMELESS}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _forget_decay_of_encodings(settings: Dict[str, Any]) -> None:
    wrapper = settings['optim_wrapper']
    params = setting(wrapper, 'paramwise_cfg')
    keys = setting(params, 'custom_keys')
    if not isinstance(keys, dict):
        return
    params['custom_keys'] = {
        k: v for k, v in keys.items() if 'positional_encoding' not in str(k)
    }
    wrapper['paramwise_cfg'] = {k: v for k, v in params.items() if v != {}}
    if not wrapper['paramwise_cfg']:
        del wrapper['paramwise_cfg']


def _name_by_content(settings: Dict[str, Any], train: Mapping,
                     test: Mapping) -> None:
    """The annotations of the training by what is in them; those of the test
    are compared elsewhere."""
    dataset_of(settings).pop('ann_file', None)
    own = dataset_of(settings, 'train_dataloader')
    origin = dataset_of(train, 'train_dataloader')
    name = joined(origin, origin.get('ann_file'))
    if name is not None:
        own['ann_file'] = content_of(name)


@lru_cache(maxsize=None)
def content_of(name: str) -> str:
    """The name and the content of a file in a word; its path if it isn't
    there."""
    try:
        with open(name, 'rb') as file:
            digest = hashlib.sha256()
            while block := file.read(1 << 24):
                digest.update(block)
    except OSError:
        return name
    return f'{Path(name).name} ({digest.hexdigest()[:8]})'
