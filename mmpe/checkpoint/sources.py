"""Where a checkpoint comes from: a file, an address or a name of a zoo."""
import hashlib
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, Iterator, Optional
from urllib.error import URLError
from urllib.parse import urlparse

import torch
from mmengine.fileio import load

from mmpe.engine.usage_error import UsageError
from mmpe.nearest import did_you_mean

PACKAGES = ('mmdet', 'mmseg', 'mmpretrain')


@dataclass(frozen=True)
class Source:
    """A checkpoint on this machine.

    Args:
        path (Path): The file.
        url (str, optional): Where it came from.
        name (str, optional): What it is called in a zoo.
    """
    path: Path
    url: Optional[str] = None
    name: Optional[str] = None


def find_source(text: str) -> Source:
    """Find a checkpoint, and download it if it isn't here yet.

    Args:
        text (str): A path; an ``http(s)`` or ``file`` address; or the name of
            a model in the metafiles of MMDetection, MMSegmentation or
            MMPretrain. What is downloaded stays in torch's hub folder.

    Raises:
        UsageError: If there is no such file, address or name, or the file
            hasn't the hash that its name says.
    """
    if '://' in text:
        return Source(_fetch(text), text)
    path = Path(text).expanduser()
    if path.exists():
        return Source(path)
    if path.suffix or '/' in text:
        raise UsageError(f'no such checkpoint file: {text}')
    urls = _zoo()
    if text not in urls:
        raise UsageError(
            f'{text} is neither a file nor a model in the metafiles of '
            f'{", ".join(PACKAGES)}.{did_you_mean(text, urls)}')
    return Source(_fetch(urls[text]), urls[text], text)


def _zoo() -> Dict[str, str]:
    """Addresses of the installed packages' models, by name."""
    urls = {}
    for metafile in _metafiles():
        content = load(metafile) or {}
        models = content.get('Models') if isinstance(content, dict) else []
        for model in models or []:
            if model.get('Weights'):
                urls.setdefault(model['Name'], model['Weights'])
    return urls


def _metafiles() -> Iterator[Path]:
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin:
            folder = Path(spec.origin).parent / '.mim/configs'
            yield from sorted(folder.glob('*/metafile.y*ml'))


def _fetch(url: str) -> Path:
    address = urlparse(url)
    if address.scheme == 'file':
        return find_source(address.path).path
    if address.scheme not in ('http', 'https'):
        raise UsageError(f'{url}: only http, https and file addresses can be '
                         'fetched; download it and give its path')
    name = Path(address.path).name
    found = re.search(r'-([0-9a-f]{8,})\.', name)
    prefix = found[1] if found else None
    if prefix is None:  # names such as checkpoint.pth are those of many
        name = f'{hashlib.sha256(url.encode()).hexdigest()[:10]}_{name}'
    path = Path(torch.hub.get_dir()) / 'checkpoints' / name
    if path.exists():
        if prefix and not _sha256(path).startswith(prefix):
            raise UsageError(f'{path} has not the hash that its name says: '
                             'remove it, and it will be downloaded again')
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        print(f'Downloading {url} to {path}', flush=True)
        torch.hub.download_url_to_file(url, str(path), prefix)
    except RuntimeError as error:  # torch's, for a wrong hash
        raise UsageError(f'{url}: {error}') from error
    except (URLError, OSError) as error:
        why = getattr(error, 'reason', error)
        raise UsageError(f'cannot download {url}: {why}. Download it on '
                         f'another machine and put it in {path}') from error
    return path


def _sha256(path: Path) -> str:
    with path.open('rb') as file:
        if hasattr(hashlib, 'file_digest'):
            return hashlib.file_digest(file, 'sha256').hexdigest()
        digest = hashlib.sha256()  # Python 3.10
        while block := file.read(1 << 20):
            digest.update(block)
        return digest.hexdigest()
