"""Necks in the detectors of MMDetection."""
import pytest
import torch
from models import move_parameters, samples
from mmdet.registry import MODELS
from mmengine.hub import get_config

from mmpe.engine import runner
from mmpe.layers.batch_shapes import padding_mask, record_batch
from mmpe.necks import SimpleFeaturePyramid, TransformerNeck, transformer_neck

SINE = dict(type='mmpe.SinePositionalEncoding', normalize=True)


def neck(**kwargs):
    arguments = dict(
        in_channels=[8, 16], embed_dims=16, num_heads=2,
        feedforward_channels=32)
    arguments.update(kwargs)
    model = TransformerNeck(**arguments)
    model.init_weights()
    return model.eval()


class TestPaddingMask:

    def test_knows_the_maps_of_its_batch(self):
        batch = torch.zeros(2, 3, 64, 96)
        record_batch(batch, [(64, 96), (40, 50)])
        mask = padding_mask(torch.zeros(2, 5, 8, 12))
        assert not mask[0].any()
        assert not mask[1, :5, :7].any()
        assert mask[1, 5:].all() and mask[1, :, 7:].all()
        assert padding_mask(batch)[1].sum() == 64 * 96 - 40 * 50

    @pytest.mark.parametrize('stride', [1, 7, 14, 16, 32])
    def test_any_stride(self, stride):
        batch = torch.zeros(2, 3, 75, 133)
        record_batch(batch, [(75, 133), (40, 50)])
        for shape in ((-(-75 // stride), -(-133 // stride)),
                      (75 // stride, 133 // stride)):
            assert padding_mask(torch.zeros(2, 5, *shape)).shape[1:] == shape

    def test_says_nothing_of_others(self):
        batch = torch.zeros(2, 3, 64, 96)
        record_batch(batch, [(64, 96), (40, 50)])
        assert padding_mask(torch.zeros(3, 5, 8, 12)) is None
        assert padding_mask(torch.zeros(2, 5, 8, 9)) is None  # a crop of it
        record_batch(batch, [(64, 96)] * 2)
        assert padding_mask(torch.zeros(2, 5, 8, 12)) is None  # no padding

    def test_forgets_a_batch_with_its_tensor(self):
        batch = torch.zeros(2, 3, 64, 96)
        record_batch(batch, [(64, 96), (40, 50)])
        del batch
        assert padding_mask(torch.zeros(2, 5, 8, 12)) is None


class TestTransformerNeck:

    @pytest.mark.parametrize('attention', ['dense', 'deformable'])
    def test_maps_keep_their_sizes(self, attention):
        maps = torch.randn(2, 8, 9, 14), torch.randn(2, 16, 5, 7)
        outs = neck(attention=attention)(maps)
        assert [o.shape for o in outs] == [(2, 16, 9, 14), (2, 16, 5, 7)]

    def test_tokens_are_row_major(self):
        # A known plug-in scrambles the positions of maps that aren't square.
        model = neck(levels=[0])
        x = torch.randn(1, 8, 3, 5, requires_grad=True)
        model.stages[0].encoder.layers = torch.nn.ModuleList()
        out = model([x, torch.randn(1, 16, 2, 3)])[0]
        out[0, :, 1, 4].square().sum().backward()
        moved = x.grad[0].abs().sum(0) > 0
        assert moved.nonzero().tolist() == [[1, 4]]

    def test_only_the_levels_asked_for_attend(self):
        x = torch.randn(1, 8, 4, 6, requires_grad=True)
        y = torch.randn(1, 16, 2, 3, requires_grad=True)
        fine, coarse = neck()((x, y))
        (fine[0, :, 1, 2].square().sum() +
         coarse[0, :, 1, 2].square().sum()).backward()
        assert (x.grad.abs().sum((0, 1)) > 0).sum() == 1
        assert (y.grad.abs().sum((0, 1)) > 0).all()
        assert len(neck(levels=[0, 1]).stages) == 2

    @pytest.mark.parametrize('arguments,says', [
        (dict(attention='sparse'), 'attention must be'),
        (dict(levels=[2]), 'levels must be of -2 to 1'),
        (dict(levels=[]), 'levels'),
        (dict(levels=-1), 'levels must be a list'),
        (dict(in_channels=16), 'in_channels must be a list'),
        (dict(num_heads=3), 'num_heads'),
        (dict(num_layers=0), 'num_layers'),
        (dict(positional_encoding=[dict(type='mmpe.PEG', zero_padding=False)]),
         'zero_padding'),
        (dict(attention='deformable',
              positional_encoding=[dict(type='mmpe.ShawRPE')]), 'ImageRPE'),
        (dict(positional_encoding=[SINE, dict(type='mmpe.LaPE', decoder=True)]
              ), 'decoder=True'),
    ])
    def test_bad_arguments(self, arguments, says):
        with pytest.raises(ValueError, match=says):
            neck(**arguments)

    def test_half_precision(self):
        model = neck().bfloat16()
        maps = [torch.randn(1, c, 4, 6).bfloat16() for c in (8, 16)]
        assert all(out.dtype == torch.bfloat16 for out in model(maps))

    def test_another_number_of_maps(self):
        for maps in [(8, )], [(8, ), (32, )]:
            with pytest.raises(ValueError, match=r'in_channels=\[8, 16\]'):
                neck()([torch.randn(1, *c, 4, 4) for c in maps])

    def test_warns_of_a_map_that_is_too_large(self, monkeypatch, caplog):
        monkeypatch.setattr(transformer_neck, 'free_bytes', lambda device: 1e6)
        model = neck(levels=[0]).train()
        with caplog.at_level('WARNING'), pytest.warns(
                UserWarning, match=r'4800 tokens .* about \d+ MiB'):
            model([torch.randn(1, 8, 60, 80), torch.randn(1, 16, 30, 40)])

    def test_memory_of_a_large_map(self):
        # Stride 16 of an image of 800x1333, as the README says.
        from torch.profiler import ProfilerActivity, profile
        model = TransformerNeck(
            [256], 256, positional_encoding=[
                SINE, dict(type='mmpe.ImageRPE', init='xavier')]).train()
        x = torch.randn(1, 256, 50, 84)
        with profile(
                activities=[ProfilerActivity.CPU], profile_memory=True) as p:
            model([x])[0].square().mean().backward()
        changes = [e.nbytes() for e in sorted(
            p.profiler.kineto_results.events(), key=lambda e: e.start_ns())
            if e.name() == '[memory]']
        peak = torch.tensor([0, *changes]).cumsum(0).max()
        assert peak < 1.5 * 2**30


class TestSimpleFeaturePyramid:

    def test_scales(self):
        x = torch.randn(2, 16, 6, 10)
        outs = SimpleFeaturePyramid(16, 8, num_outs=5)([x])
        assert [tuple(o.shape[2:]) for o in outs] == [
            (24, 40), (12, 20), (6, 10), (3, 5), (2, 3)]
        assert all(o.shape[1] == 8 for o in outs)

    @pytest.mark.parametrize('arguments,says', [
        (dict(scales=(3, )), 'scales'),
        (dict(scales=()), 'scales'),
        (dict(num_outs=2), 'num_outs=2'),
        (dict(in_channels=[16]), 'in_channels'),
    ])
    def test_bad_arguments(self, arguments, says):
        with pytest.raises(ValueError, match=says):
            SimpleFeaturePyramid(**dict(dict(in_channels=16), **arguments))

    def test_another_width(self):
        with pytest.raises(ValueError, match='in_channels=16.* has 8'):
            SimpleFeaturePyramid(16)([torch.randn(1, 8, 4, 4)])


def small_detector(preprocessor, items):
    """Faster R-CNN on a convolution, with a neck on its only map."""
    cfg = get_config(
        'mmdet::faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py').model
    cfg.data_preprocessor.type = preprocessor
    cfg.data_preprocessor.pad_size_divisor = 8
    cfg.backbone = dict(
        type='mmpe.VisionTransformer',
        arch=dict(embed_dims=16, num_layers=2, num_heads=2,
                  feedforward_channels=32),
        img_size=32,
        patch_size=8,
        positional_encoding=items,
        with_cls_token=False)
    cfg.neck = dict(
        type='mmpe.TransformerNeck',
        in_channels=[16],
        embed_dims=256,
        positional_encoding=items)
    cfg.rpn_head.anchor_generator.strides = [8]
    cfg.roi_head.bbox_roi_extractor.featmap_strides = [8]
    model = MODELS.build(cfg)
    move_parameters(model)
    return model.eval()


@pytest.mark.parametrize('kind,warned', [('DetDataPreprocessor', True),
                                         ('mmpe.DetDataPreprocessor', False)])
def test_tools_warn_of_padding(kind, warned, monkeypatch):
    lines = []
    monkeypatch.setattr(runner, 'print_log',
                        lambda line, **kwargs: lines.append(line))
    runner.warn_of_padding(small_detector(kind, [SINE]))
    assert ["type='mmpe.DetDataPreprocessor'" in line
            for line in lines] == [True] * warned


@pytest.mark.parametrize('items', [
    [SINE],
    [dict(type='mmpe.PEG')],
    [SINE, dict(type='mmpe.ImageRPE')],
    [SINE, dict(type='mmpe.LaPE')],
])
def test_faster_rcnn_is_the_same_alone_and_in_a_batch(items):
    sizes = [(48, 64), (32, 40)]
    images = [torch.randint(256, (3, *s), dtype=torch.uint8) for s in sizes]
    found = {}
    for kind in 'mmpe.DetDataPreprocessor', 'DetDataPreprocessor':
        model = small_detector(kind, items)

        def features(chosen):
            data = model.data_preprocessor(
                dict(inputs=[images[i] for i in chosen],
                     data_samples=samples([sizes[i] for i in chosen],
                                          (48, 64))))
            return model.extract_feat(data['inputs'])[0]

        with torch.no_grad():
            together, alone = features([0, 1])[1], features([1])[0]
        h, w = alone.shape[1:]
        found[kind] = (together[:, :h, :w] - alone).abs().max()
    assert found['mmpe.DetDataPreprocessor'] < 1e-4
    assert found['DetDataPreprocessor'] > 1e-2  # which knows no padding
