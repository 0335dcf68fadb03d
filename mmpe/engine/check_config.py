"""A config that cannot be used, in one line."""
import logging
import re
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List

from mmengine import registry as mmengine_registries
from mmengine.config import Config
from mmengine.hub import get_config
from mmengine.logging import print_log
from mmengine.registry import Registry

from mmpe.nearest import did_you_mean
from mmpe.position import PositionEncoding, check_items
from .usage_error import UsageError

# Code that a config only hands values to. An error that passed through
# anything else, such as a user's own module, keeps its traceback.
_LIBRARIES = ('mmpe', 'mmengine', 'mmdet', 'mmcv', 'torch',
              'contextlib')  # which Python 3.10 leaves in tracebacks


def read_config(path: str) -> Config:
    """``Config.fromfile``, or the config of a package: ``mmpe::detr/...``.

    Raises:
        UsageError: If the file, or one that it builds on, is missing or fails.
    """
    of_package = '::' in path
    if not of_package and not Path(path).is_file():
        raise UsageError(f'no such config file: {path}')
    try:
        return get_config(path) if of_package else Config.fromfile(path)
    except Exception as error:  # configs are code: anything may happen
        raise UsageError(f'config {path}: {_reason(error)}') from error


def merge_options(cfg: Config, options: Dict[str, Any]) -> None:
    """Put what ``--cfg-options`` says into ``cfg``.

    Raises:
        UsageError: If a key leads past the end of a list, or into something
            that has no keys.
    """
    for key in options:
        _check_key(cfg, key)
    try:
        cfg.merge_from_dict(options)
    except (KeyError, TypeError) as error:
        raise UsageError(f'--cfg-options: {_reason(error)}') from error


@contextmanager
def config_errors(cfg: Config) -> Iterator[None]:
    """Say in one line what goes wrong while something is built from ``cfg``.

    Only for errors that the values of the config cause. The traceback goes to
    the log for those who ask for ``log_level='DEBUG'``.

    Raises:
        UsageError: Instead of the error.
    """
    _check_host(cfg)
    try:
        _check_lists(cfg)
        yield
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        if not str(error) or not _is_of_libraries(error):
            raise
        print_log(traceback.format_exc(), 'current', logging.DEBUG)
        raise UsageError(
            f'config {cfg.filename}: {_reason(error)}') from error


def _check_lists(cfg: Config) -> None:
    """What building would find out too, but only after the runner has filled
    the screen with the environment and the config."""
    model = cfg.get('model') or {}
    for key in 'positional_encoding', 'memory_positional_encoding':
        if isinstance(model.get(key), (list, tuple)):
            check_items(model[key])


def _check_host(cfg: Config) -> None:
    """MMDetection's detectors fail on a list without saying why."""
    model = cfg.get('model') or {}
    kind = model.get('type')
    from mmdet.registry import MODELS  # when it is needed
    cls = MODELS.get(kind) if isinstance(kind, str) else kind
    if cls is None and str(kind).startswith('mmpe.'):
        raise UsageError(
            f"config {cfg.filename}: {_unknown_type(kind, 'model')}")
    # A detector of the user's own may take a list.
    if (isinstance(model.get('positional_encoding'), (list, tuple))
            and cls is not None and cls.__module__.startswith('mmdet.')):
        raise UsageError(
            f'config {cfg.filename}: model.type={kind!r} takes no list '
            'as positional_encoding; the detectors that do are '
            f'{", ".join(_hosts())}')


def _check_key(cfg: Config, key: str) -> None:
    place, value = '', dict(cfg.items())
    for part in key.split('.'):
        where = f'--cfg-options {key}: {place or "the config"}'
        if isinstance(value, (list, tuple)):
            if not part.isdigit() or int(part) >= len(value):
                raise UsageError(f'{where} is a list of length {len(value)}; '
                                 f'it has no item {part!r}')
            value = value[int(part)]
        elif not isinstance(value, dict):
            raise UsageError(
                f'{where} is {value!r}, which has no key {part!r}')
        elif part in value:
            value = value[part]
        elif part.isdigit():
            raise UsageError(f'{where} is no list but has the keys '
                             f'{", ".join(value)}')
        else:
            # A new key is fine, and so are keys in it, but not a number: only
            # a list has those.
            rest = key[len(place):].strip('.').split('.')
            if any(word.isdigit() for word in rest):
                raise UsageError(f'{where} has no list {part!r}.'
                                 f'{did_you_mean(part, value)}')
            return
        place = f'{place}.{part}' if place else part


def _is_of_libraries(error: BaseException) -> bool:
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            package = frame.f_globals.get('__name__', '').partition('.')[0]
            if package not in _LIBRARIES:
                return False
        error = error.__cause__
    return True


def _reason(error: BaseException) -> str:
    """The message of an error, with the place in the config that raised it."""
    text = str(error)
    if isinstance(error, KeyError):
        text = str(error.args[0])  # str() puts it in quotation marks
        unknown = re.match(r'(\S+) is not in the (\w+)::(\w[\w ]*) registry',
                           text)
        if unknown:
            return _unknown_type(unknown[1], unknown[3])
        if ' ' not in text:
            text = f'no key {text!r}'
    elif isinstance(error, SyntaxError):
        text = f'{error.msg}, line {error.lineno}'
    elif isinstance(error, FileNotFoundError):
        text = _missing_base(error)
    elif isinstance(error, ImportError):
        text = text.split(', the current sys.path')[0]
        if error.__context__:
            text += f': {error.__context__}'
    elif isinstance(error, TypeError) and 'cannot inherit from' in text:
        text += ' In positional_encoding, write a list.' \
            if text.startswith('positional_encoding') else ''
    elif not isinstance(error, (AssertionError, TypeError, ValueError)):
        text = f'{type(error).__name__}: {text}'
    return _line(error) + text


def _line(error: BaseException) -> str:
    places = [
        frame for frame in traceback.extract_tb(error.__traceback__)
        if frame.name == '<module>' and frame.filename.endswith('.py')
    ]
    return f'{places[-1].filename}, line {places[-1].lineno}: ' \
        if places else ''


def _missing_base(error: FileNotFoundError) -> str:
    quoted = re.search(r'"(.+)"', str(error))
    path = Path(error.filename or (quoted[1] if quoted else str(error)))
    there = [file.name for file in path.parent.glob('*.py')]
    return f'no such file: {path}.{did_you_mean(path.name, there)}'


def _unknown_type(kind: str, registry: str) -> str:
    if kind.startswith('mmpe.'):
        known = _hosts()
        return (f'mmpe has no {kind}.{did_you_mean(kind, known)} It has '
                f'{", ".join(known)}, and position encodings for the list')
    near = did_you_mean(kind, _registered(registry))
    return f'no {registry} of type {kind!r} is registered.{near}'


def _hosts() -> List[str]:
    from mmpe.registry import MODELS
    MODELS.import_from_location()
    return sorted(  # MMSegmentation's are functions that import it
        f'{MODELS.scope}.{name}' for name, cls in MODELS.module_dict.items()
        if not (isinstance(cls, type) and issubclass(cls, PositionEncoding)))


def _registered(name: str) -> List[str]:
    """All that is registered for a purpose, such as ``'model'``, anywhere."""
    return [
        kind for root in vars(mmengine_registries).values()
        if isinstance(root, Registry) and root.name == name
        for registry in (root, *root.children.values())
        for kind in registry.module_dict
    ]
