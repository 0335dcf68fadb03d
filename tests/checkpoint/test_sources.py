"""Checkpoints by path, address and name of the zoo."""
import hashlib
import http.server
import threading
from pathlib import Path

import pytest
import torch

from mmpe.checkpoint import find_source, sources
from mmpe.engine.usage_error import UsageError

CONTENT = b'as much of a checkpoint as is needed' * 1000
DIGEST = hashlib.sha256(CONTENT).hexdigest()[:8]


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty hub folder of torch; where it keeps checkpoints."""
    monkeypatch.setattr(torch.hub, 'get_dir', lambda: str(tmp_path / 'hub'))
    return tmp_path / 'hub/checkpoints'


class Zoo(http.server.BaseHTTPRequestHandler):
    """Has every ``.pth`` but those called missing."""
    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        if 'missing' in self.path:
            return self.send_error(404)
        self.send_response(200)
        self.send_header('Content-Length', str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *args):
        pass


@pytest.fixture(scope='module')
def address():
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Zoo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f'http://127.0.0.1:{server.server_port}'
    server.shutdown()
    server.server_close()


def message(text):
    with pytest.raises(UsageError) as error:
        find_source(text)
    assert '\n' not in str(error.value)
    return str(error.value)


def test_address_is_downloaded_once(hub, address, capfd):
    url = f'{address}/zoo/detr-{DIGEST}.pth?download=1'
    Zoo.asked.clear()
    for _ in range(2):
        source = find_source(url)
        assert source.path == hub / f'detr-{DIGEST}.pth'
        assert source.path.read_bytes() == CONTENT
        assert source.url == url
    assert len(Zoo.asked) == 1
    out, err = capfd.readouterr()
    assert str(hub) in out
    assert '100%' in err  # torch's progress bar


def test_wrong_hash_is_not_kept(hub, address):
    url = f'{address}/detr-00000000.pth'
    assert 'invalid hash' in message(url)
    assert list(hub.iterdir()) == []
    path = hub / 'detr-00000000.pth'
    path.write_bytes(b'cut off')
    assert str(path) in message(url) and 'hash' in message(url)


def test_name_without_a_hash(hub, address):
    assert find_source(f'{address}/r50_deformable_detr-checkpoint.pth').path \
        .read_bytes() == CONTENT


def test_files_of_one_name_at_two_addresses(hub, address):
    """Such as Hugging Face's pytorch_model.bin: the second was the first."""
    paths = {find_source(f'{address}/{model}/pytorch_model.bin').path
             for model in 'ab'}
    assert len(paths) == 2


def test_no_network_says_where_to_put_the_file(hub, address):
    for url in ('http://127.0.0.1:9/x-12345678.pth',
                f'{address}/missing-12345678.pth'):
        line = message(url)
        assert url in line
        assert str(hub / Path(url).name) in line
    assert str(hub) in message(f'{address}/missing.pth')
    assert list(hub.iterdir()) == []


def test_other_schemes(tmp_path):
    path = tmp_path / 'a.pth'
    path.write_bytes(CONTENT)
    assert find_source(f'file://{path}').path == path
    assert 'only http' in message('s3://bucket/a.pth')


def test_paths(tmp_path, monkeypatch):
    path = tmp_path / 'a.pth'
    path.write_bytes(CONTENT)
    assert find_source(str(path)).path == path
    monkeypatch.setenv('HOME', str(tmp_path))
    assert find_source('~/a.pth').path == path
    for missing in 'b.pth', 'folder/b':
        assert f'no such checkpoint file: {missing}' == message(missing)


def test_names_of_the_zoo(hub, monkeypatch):
    fetched = []
    monkeypatch.setattr(sources, '_fetch', fetched.append)
    name = 'detr_r50_8xb2-150e_coco'
    source = find_source(name)
    assert source.name == name
    assert fetched == [source.url]
    assert Path(source.url).name.startswith(name)
    assert source.url.endswith('-436d03e8.pth')
    assert f'Did you mean {name}?' in message('detr_r50_8xb2-150_coco')


def test_names_of_mmsegmentation(monkeypatch):
    monkeypatch.setattr(sources, '_fetch', lambda url: url)
    assert find_source('fcn_r50-d8_4xb2-40k_cityscapes-512x1024').url
