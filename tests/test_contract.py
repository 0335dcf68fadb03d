"""What must hold for every encoding on every host.

An encoding under ``mmpe`` is picked up from the registry with its default
arguments; ``VARIANTS`` adds others. A host is an entry of ``HOSTS``.
"""
import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from models import build, move_parameters, samples, small_cfg
from torch.testing import assert_close

from mmpe.backbones import VisionTransformer
from mmpe.layers import PositionStream, term_attention
from mmpe.layers.batch_shapes import record_batch
from mmpe.necks import TransformerNeck, transformer_neck
from mmpe.position import PositionEncoding, TokenGrid
from mmpe.registry import MODELS

BN_RELU = dict(bias=False, norm_cfg=dict(type='BN'), act_cfg=dict(type='ReLU'))


def registered():
    """Encodings that come with mmpe, by the name that users write."""
    MODELS.import_from_location()
    return {
        f'mmpe.{name}': cls
        for name, cls in MODELS.module_dict.items()
        if isinstance(cls, type) and issubclass(cls, PositionEncoding)
        and cls.__module__.startswith('mmpe.')
    }


VARIANTS = {
    'none': [],
    'sine normalized': [
        dict(type='mmpe.SinePositionalEncoding', normalize=True, offset=-0.5)
    ],
    'sine 1-D': [dict(type='mmpe.SinePositionalEncoding', dims=1)],
    'PEG BN': [dict(type='mmpe.PEG', positions=(-1, 0, 1), **BN_RELU)],
    'PEG LN separable': [
        dict(
            type='mmpe.PEG',
            kind='separable',
            kernel_size=5,
            num_convs=2,
            norm_cfg=dict(type='LN'))
    ],
    'iRPE qkv': [
        dict(
            type='mmpe.ImageRPE',
            ratio=0.6,
            method='cross',
            target='qkv',
            shared_heads=False)
    ],
    'iRPE bias on q': [
        dict(type='mmpe.ImageRPE', mode='bias', target='qk', ratio=0.6)
    ],
    'iRPE bias': [
        dict(
            type='mmpe.ImageRPE', method='euclidean', mode='bias', layers=[1]),
        dict(type='mmpe.SinePositionalEncoding', normalize=True)
    ],
    'learned + LaPE': [
        dict(type='mmpe.LearnedPositionalEncoding'),
        dict(type='mmpe.LaPE', num_layers=1)
    ],
    'table + LaPE progressive': [
        dict(type='mmpe.PositionEmbedding', grid=(4, 5), keep_norm=True),
        dict(
            type='mmpe.LaPE', form='progressive', scale='scalar', shift=False)
    ],
    'sine + PEG dense': [
        dict(type='mmpe.SinePositionalEncoding', normalize=True),
        dict(type='mmpe.PEG', kind='dense')
    ],
}
# Of encodings that can't do without.
ARGUMENTS = {
    name: dict(grid=(4, 5))
    for name in ('mmpe.RelativePositionBias', 'mmpe.PositionEmbedding')
}
# Of encodings that change what another embeds.
BEFORE = {'mmpe.LaPE': [dict(type='mmpe.SinePositionalEncoding')]}
ENCODINGS = {
    **{name: [*BEFORE.get(name, []),
              dict(type=name, **ARGUMENTS.get(name, {}))]
       for name in registered()},
    **VARIANTS
}
# Hosts and their levels.
HOSTS = dict(
    detr=1, vit=1, windows=1, neck=1, single=1, deformable=2, pyramid=2,
    twostage=2)
DENSE = ['detr', 'vit', 'windows', 'neck']
# MMDetection's two stages work at a width of 256 only.
DIMS = dict(
    dict.fromkeys(HOSTS, 16), twostage=256)


def relative(encoding):
    classes = registered()
    return any(
        classes[item['type']].terms is not PositionEncoding.terms
        for item in ENCODINGS[encoding])


# What deformable attention has no meaning for.
DENSE_ONLY = [
    name for name in ENCODINGS if relative(name)
    and name not in ('mmpe.ImageRPE', 'iRPE bias')
]


def pairs(hosts):
    """Hosts with the encodings that they take, for every test."""
    return pytest.mark.parametrize('host,encoding', [
        (host, encoding) for host in hosts for encoding in ENCODINGS
        if host in DENSE or encoding not in DENSE_ONLY
    ])


on_all = pairs(HOSTS)
# Two stages differ after the encoder only, where MMDetection may choose padded
# cells as queries: their score is a constant, which a valid one can be below.
on_encoders = pairs([*HOSTS][:-1])
# Windows tell positions apart by themselves.
on_all_to_all = pairs(['detr', 'vit', 'neck'])


class Detector:
    """A detector with an encoding, seen from its transformer."""

    def __init__(self, kind, encoding, num_cp=0, **overrides):
        # 1x1 grids have few tokens, of which two stages choose the queries.
        self.num_levels = HOSTS[kind]
        self.dims = DIMS[kind]
        cfg = small_cfg(
            kind,
            dims=self.dims,
            num_queries=1 if kind == 'twostage' else 4,
            positional_encoding=ENCODINGS[encoding],
            **overrides)
        cfg.encoder.num_cp = num_cp
        self.model = build(cfg)
        self.cfg = cfg

    @property
    def encoding(self):
        return self.model.positional_encoding

    def maps(self, batch, canvas):
        """Random maps; level l has a stride of 2**l cells."""
        h, w = canvas
        return tuple(
            torch.randn(batch, self.dims, -(-h // 2**i), -(-w // 2**i))
            for i in range(self.num_levels))

    def inputs(self, maps, sizes, mask=None):
        """What the encoder takes, with another mask if one is given."""
        inputs, _ = self.model.pre_transformer(
            maps, samples(sizes, tuple(maps[0].shape[-2:])))
        if mask is not None:
            stream = inputs['feat_pos']
            grid = TokenGrid(stream.grid(-1).shapes, mask)
            inputs.update(
                feat_mask=mask,
                feat_pos=PositionStream(self.encoding, grid, stream.pos(-1)))
        return inputs

    def encode(self, maps, sizes, mask=None):
        """``(B, N, C)`` memory for images of ``sizes`` cells of level 0."""
        inputs = self.inputs(maps, sizes, mask)
        return self.model.forward_encoder(**inputs)['memory']

    def states(self, maps, sizes):
        """``(L, B, Q, C)`` states of the decoder."""
        out = self.model.forward_transformer(
            maps, samples(sizes, tuple(maps[0].shape[-2:])))
        return out['hidden_states']

    def finite_loss(self, maps, sizes):
        """A loss whose targets aren't drawn from the sizes: one image has
        none."""
        canvas = tuple(maps[0].shape[-2:])
        targets = samples([canvas] * len(sizes), canvas)
        for target, size in zip(targets, sizes):
            target.set_metainfo(dict(img_shape=size))
        heads = self.model.forward_transformer(maps, targets)
        for target, size in zip(targets, sizes):
            target.set_metainfo(dict(img_shape=(32, 32)))
        losses = self.model.bbox_head.loss(**heads, batch_data_samples=targets)
        return sum(v.sum() for v in losses.values())

    def loss(self, num_boxes=2):
        """Of a training step on random images, one of which is padded."""
        targets = samples([(64, 64), (48, 64)], (64, 64), num_boxes)
        losses = self.model.loss(torch.randn(2, 3, 64, 64), targets)
        return sum(v.sum() for v in losses.values())

    def compiled(self, maps, sizes):
        """:meth:`encode` through ``torch.compile``."""
        inputs = self.inputs(maps, sizes)
        encoder = torch.compile(self.model.encoder, backend='eager')
        kwargs = dict(
            query=inputs['feat'],
            query_pos=inputs['feat_pos'],
            key_padding_mask=inputs['feat_mask'])
        for key in 'spatial_shapes', 'level_start_index', 'valid_ratios':
            if key in inputs:
                kwargs[key] = inputs[key]
        return encoder(**kwargs)

    def reference(self):
        """The state dict of what it must be a superset of."""
        cfg = copy.deepcopy(self.cfg)
        cfg.positional_encoding = dict(num_feats=self.dims // 2)
        return build(cfg, scope='mmdet').state_dict()

    def crop(self, maps, index, size):
        """The maps of one image alone."""
        h, w = size
        return tuple(m[index:index + 1, :, :-(-h // 2**i), :-(-w // 2**i)].
                     contiguous() for i, m in enumerate(maps))

    def valid(self, memory, maps, index, size):
        """Tokens of one image that lie in its valid rectangle."""
        out = []
        h, w = size
        levels = memory[index].split([m[0, 0].numel() for m in maps])
        for i, (m, level) in enumerate(zip(maps, levels)):
            cells = level.unflatten(0, m.shape[-2:])
            out.append(cells[:-(-h // 2**i), :-(-w // 2**i)].flatten(0, 1))
        return torch.cat(out)


class Backbone(Detector):
    """A vision transformer with an encoding; its images are the maps, a cell
    each pixel. Its tokens are those of the grid."""

    options = dict(
        vit=dict(),
        windows=dict(
            with_cls_token=False, window_size=3, global_layers=(1, )))

    def __init__(self, kind, encoding, num_cp=0):
        self.num_levels, self.dims = HOSTS[kind], DIMS[kind]
        arch = dict(
            embed_dims=self.dims,
            num_layers=2,
            num_heads=2,
            feedforward_channels=2 * self.dims)
        self.cfg = dict(
            arch=arch,
            img_size=(4, 5),
            patch_size=1,
            in_channels=self.dims,
            with_cp=num_cp > 0,
            **self.options[kind])
        torch.manual_seed(0)
        self.model = VisionTransformer(
            positional_encoding=ENCODINGS[encoding], **self.cfg)
        self.model.init_weights()

    def encode(self, maps, sizes, mask=None):
        if mask is None and set(sizes) != {tuple(maps[0].shape[-2:])}:
            mask = torch.ones_like(maps[0][:, 0], dtype=torch.bool)
            for m, (h, w) in zip(mask, sizes):
                m[:h, :w] = False
        elif mask is not None:
            mask = mask.view_as(maps[0][:, 0])
        out, = self.model(maps[0], mask)
        return out.flatten(2).transpose(1, 2)

    def states(self, maps, sizes):
        return self.encode(maps, sizes)[None, :, :0]

    def finite_loss(self, maps, sizes):
        return self.encode(maps, sizes).square().sum()

    def loss(self, num_boxes=2):
        # Not a sum: its gradient before a norm would be zero.
        out = self.encode(self.maps(2, (6, 7)), [(6, 7), (4, 5)])
        return (out * torch.linspace(0, 1, out.numel()).view_as(out)).sum()

    def compiled(self, maps, sizes):
        eager = self.model
        try:
            self.model = torch.compile(eager, backend='eager')
            return self.encode(maps, sizes)
        finally:
            self.model = eager

    def reference(self):
        return VisionTransformer(
            positional_encoding=[], **self.cfg).state_dict()


class Neck(Backbone):
    """A transformer neck with an encoding, dense or deformable."""

    options = dict(
        neck=dict(attention='dense'),
        pyramid=dict(attention='deformable', num_points=2))

    def __init__(self, kind, encoding, num_cp=0):
        self.num_levels, self.dims = HOSTS[kind], DIMS[kind]
        self.cfg = dict(
            in_channels=[self.dims] * self.num_levels,
            embed_dims=self.dims,
            num_layers=2,
            num_heads=2,
            feedforward_channels=2 * self.dims,
            with_cp=num_cp > 0,
            **self.options[kind])
        torch.manual_seed(0)
        self.model = TransformerNeck(
            positional_encoding=ENCODINGS[encoding], **self.cfg)
        self.model.init_weights()

    @property
    def encoding(self):
        return self.model.stages[0].positional_encoding

    def encode(self, maps, sizes, mask=None):
        # What a data preprocessor would do.
        batch = torch.empty(len(sizes), 3, *maps[0].shape[-2:])
        record_batch(batch, sizes)
        if mask is not None:
            levels = mask.split([m[0, 0].numel() for m in maps], 1)
            shapes = {m.shape[-2:]: level.view_as(m[:, 0])
                      for m, level in zip(maps, levels)}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(transformer_neck, 'padding_mask',
                              lambda m: shapes[m.shape[-2:]])
                outs = self.model(maps)
        else:
            outs = self.model(maps)
        return torch.cat([out.flatten(2) for out in outs], 2).transpose(1, 2)

    def reference(self):
        return TransformerNeck(
            positional_encoding=[], **self.cfg).state_dict()


def make_host(kind, encoding, **kwargs):
    for cls in Backbone, Neck:
        if kind in cls.options:
            return cls(kind, encoding, **kwargs)
    return Detector(kind, encoding, **kwargs)


_cache = {}


def build_host(kind, encoding):
    if (kind, encoding) not in _cache:
        host = make_host(kind, encoding)
        move_parameters(host.model)
        _cache[kind, encoding] = host
    host = _cache[kind, encoding]
    host.model.eval()
    return host


even = st.integers(1, 4).map(lambda n: 2 * n)
batches = st.lists(st.tuples(even, even), min_size=1, max_size=3)


@on_encoders
@settings(max_examples=5)
@given(sizes=batches, more=st.tuples(even, even), seed=st.integers(0, 99))
def test_padding_never_leaks(host, encoding, sizes, more, seed):
    torch.manual_seed(seed)
    host = build_host(host, encoding)
    canvas = tuple(
        max(s[i] for s in sizes) + more[i] % 4 for i in range(2))
    maps = host.maps(len(sizes), canvas)
    with torch.no_grad():
        together = host.encode(maps, sizes)
        states = host.states(maps, sizes)
        for i, size in enumerate(sizes):
            own = host.crop(maps, i, size)
            alone = host.encode(own, [size])
            assert_close(
                host.valid(together, maps, i, size),
                alone[0],
                rtol=1e-5,
                atol=1e-5)
            assert_close(
                states[:, i],
                host.states(own, [size])[:, 0],
                rtol=1e-5,
                atol=1e-5)


@on_encoders
def test_padding_never_leaks_in_training(host, encoding):
    host = build_host(host, encoding)
    sizes = [(6, 4), (2, 6)]
    tight = host.maps(2, (6, 6))
    wide = tuple(100 * m for m in host.maps(2, (8, 10)))
    for small, large in zip(tight, wide):
        large[:, :, :small.shape[2], :small.shape[3]] = small
    outputs, statistics = [], []
    for maps in tight, wide:
        twin = copy.deepcopy(host)
        twin.model.train()
        memory = twin.encode(maps, sizes)
        outputs.append(
            [twin.valid(memory, maps, i, s) for i, s in enumerate(sizes)])
        statistics.append(dict(twin.encoding.named_buffers()))
    assert_close(outputs[0], outputs[1], rtol=1e-5, atol=1e-5)
    assert_close(statistics[0], statistics[1], rtol=1e-5, atol=1e-5)


@on_encoders
def test_gradients_of_valid_outputs_ignore_padding(host, encoding):
    host = build_host(host, encoding)
    sizes = [(6, 4), (2, 6)]
    maps = tuple(m.requires_grad_() for m in host.maps(2, (8, 6)))
    memory = host.encode(maps, sizes)
    valid = [host.valid(memory, maps, i, s) for i, s in enumerate(sizes)]
    sum(v.square().sum() for v in valid).backward()
    for level, m in enumerate(maps):
        for i, (h, w) in enumerate(sizes):
            grad = m.grad[i].clone()
            assert grad.abs().sum() > 0
            grad[:, :h // 2**level, :w // 2**level] = 0
            assert grad.abs().max() == 0


@on_encoders
def test_no_mask_is_an_all_valid_mask(host, encoding):
    host = build_host(host, encoding)
    maps = host.maps(2, (4, 6))
    out = host.encode(maps, [(4, 6)] * 2)
    mask = torch.zeros(2, sum(m[0, 0].numel() for m in maps), dtype=torch.bool)
    shapes = tuple(tuple(m.shape[-2:]) for m in maps)
    prefix = host.encoding.num_prefix
    empty = host.encoding.embed(
        TokenGrid(shapes, None, prefix, torch.device('cpu')))
    if empty is not None:
        embedding = host.encoding.embed(
            TokenGrid(shapes, F.pad(mask, (prefix, 0)), prefix))
        assert_close(
            embedding, empty.expand_as(embedding), rtol=1e-6, atol=1e-6)
    masked = host.encode(maps, [(4, 6)] * 2, mask)
    assert_close(out, masked, rtol=1e-6, atol=1e-6)


@on_all_to_all
@settings(max_examples=5)
@given(h=st.integers(2, 5), w=st.integers(2, 5), seed=st.integers(0, 99))
def test_tokens_know_where_they_are(host, encoding, h, w, seed):
    torch.manual_seed(seed)
    host = build_host(host, encoding)
    maps = host.maps(1, (h, w))
    order = torch.randperm(h * w)
    shuffled = tuple(m.flatten(2)[..., order].view_as(m) for m in maps)
    with torch.no_grad():
        out = host.encode(maps, [(h, w)])[:, order]
        permuted = host.encode(shuffled, [(h, w)])
    if not host.encoding.encodings:
        assert_close(out, permuted, rtol=1e-5, atol=1e-5)
    elif not torch.equal(order, torch.arange(h * w)):
        assert (out - permuted).abs().max() > 1e-3


@on_all_to_all
def test_only_absolute_encodings_notice_a_shift(host, encoding):
    host = build_host(host, encoding)
    canvas, patch = (24, 26), torch.randn(host.dims, 3, 4)
    outputs = []
    for y, x in (10, 10), (11, 12):
        m = torch.zeros(1, host.dims, *canvas)
        m[0, :, y:y + 3, x:x + 4] = patch
        with torch.no_grad():
            memory = host.encode((m, ), [canvas])
        cells = memory[0].unflatten(0, canvas)
        outputs.append(cells[y - 1:y + 4, x - 1:x + 5])
    difference = (outputs[0] - outputs[1]).abs().max()
    if host.encoding.is_absolute:
        assert difference > 1e-3
    else:
        # How many cells lie far to each side changes with the shift, which
        # relative encodings see a little of.
        assert difference < (0.1 if host.encoding.is_relative else 1e-4)


@on_all
@pytest.mark.parametrize('canvas,sizes', [
    ((1, 1), [(1, 1), (1, 1)]),
    ((1, 8), [(1, 8), (1, 2)]),
    ((8, 1), [(2, 1), (8, 1)]),
    ((4, 4), [(4, 4), (0, 0)]),
])
def test_odd_grids_stay_finite(host, encoding, canvas, sizes):
    host = build_host(host, encoding)
    host = copy.deepcopy(host)
    host.model.train()
    maps = tuple(m.requires_grad_() for m in host.maps(2, canvas))
    total = host.finite_loss(maps, sizes)
    total.backward()
    assert total.isfinite()
    for name, p in host.model.named_parameters():
        if p.grad is not None:
            assert p.grad.isfinite().all(), name


@on_all
@pytest.mark.parametrize('num_boxes', [2, 0])
def test_every_parameter_learns(host, encoding, num_boxes):
    host = make_host(host, encoding)
    model = host.model.train()
    total = host.loss(num_boxes)
    total.backward()
    assert total.isfinite()
    orphans = [
        n for n, p in model.named_parameters()
        if p.requires_grad and p.grad is None
    ]
    assert orphans == []


@on_encoders
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16])
def test_autocast_agrees(host, encoding, dtype):
    host = build_host(host, encoding)
    sizes = [(8, 6), (4, 8)]
    maps = host.maps(2, (8, 8))
    grid = TokenGrid(
        tuple(tuple(m.shape[-2:]) for m in maps), None,
        host.encoding.num_prefix, torch.device('cpu'))
    with torch.no_grad():
        exact = host.encode(maps, sizes)
        embedding = host.encoding.embed(grid)
        with torch.autocast('cpu', dtype=dtype):
            out = host.encode(maps, sizes)
            low = host.encoding.embed(grid)
    if embedding is not None:
        assert low.dtype == torch.float32
        assert_close(low, embedding, rtol=0, atol=0)
    error = (out.float() - exact).abs()
    precision = torch.finfo(dtype).eps
    # Two layers of some ten roundings each, on values of about one.
    for i, size in enumerate(sizes):
        assert host.valid(error, maps, i, size).mean() < 4 * precision


@on_encoders
def test_checkpointing_changes_nothing(host, encoding):
    gradients, statistics = [], []
    for num_cp in 0, 2:
        twin = make_host(host, encoding, num_cp=num_cp)
        model = twin.model.train()
        move_parameters(model)
        torch.manual_seed(3)
        twin.loss().backward()
        gradients.append({n: p.grad for n, p in model.named_parameters()})
        statistics.append(dict(twin.encoding.named_buffers()))
    assert_close(gradients[0], gradients[1], rtol=1e-5, atol=1e-6)
    assert_close(statistics[0], statistics[1], rtol=0, atol=0)


@on_encoders
def test_copies_and_pickles_are_the_same(host, encoding):
    host = build_host(host, encoding)
    maps, sizes = host.maps(2, (4, 6)), [(4, 6), (2, 4)]
    with torch.no_grad():
        out = host.encode(maps, sizes)
        original = host.model
        try:
            for twin in (copy.deepcopy(original),
                         pickle.loads(pickle.dumps(original))):
                host.model = twin
                assert_close(host.encode(maps, sizes), out, rtol=0, atol=0)
        finally:
            host.model = original


@on_encoders
def test_state_dict_is_a_superset(host, encoding):
    host = make_host(host, encoding)
    theirs, ours = host.reference(), host.model.state_dict()
    extra = set(ours) - set(theirs)
    assert {k: v.shape for k, v in theirs.items()} == {
        k: v.shape
        for k, v in ours.items() if k not in extra
    }
    assert all('positional_encoding.' in k for k in extra)
    assert not any('backbone' in k for k in extra)


@on_encoders
def test_compiling_changes_nothing(host, encoding):
    host = build_host(host, encoding)
    maps, sizes = host.maps(2, (4, 6)), [(4, 6), (2, 4)]
    with torch.no_grad():
        expected = host.encode(maps, sizes)
        assert_close(host.compiled(maps, sizes), expected)


@pytest.mark.parametrize('encoding', DENSE_ONLY)
@pytest.mark.parametrize('host', [h for h in HOSTS if h not in DENSE])
def test_hosts_refuse_what_they_can_not_do(host, encoding):
    with pytest.raises(ValueError, match="ImageRPE with target='k' only"):
        make_host(host, encoding)


@pytest.mark.parametrize('encoding', [*filter(relative, ENCODINGS)])
@pytest.mark.parametrize('host', DENSE)
@settings(max_examples=10)
@given(
    sizes=batches,
    more=st.tuples(even, even))
def test_tiles_equal_all_pairs_at_once(host, encoding, sizes, more):
    host = copy.deepcopy(build_host(host, encoding))
    host.model.double()
    canvas = tuple(
        max(s[i] for s in sizes) + more[i] % 4 for i in range(2))
    maps = tuple(m.double() for m in host.maps(len(sizes), canvas))
    outputs = []
    for threshold in 0, 512:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(term_attention, 'DENSE_TOKENS', threshold)
            host.model.zero_grad()
            memory = host.encode(maps, sizes)
            valid = torch.cat([host.valid(memory, maps, i, size)
                               for i, size in enumerate(sizes)])
            valid.square().sum().backward()
            grads = {
                n: p.grad
                for n, p in host.model.named_parameters()
                if p.grad is not None
            }
            outputs.append((valid.detach(), grads))
    assert_close(outputs[0], outputs[1], rtol=1e-9, atol=1e-9)
