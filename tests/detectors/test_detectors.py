"""What a user writes in a detector's config, and what goes wrong."""
import pytest
import torch
from models import build, samples, small, small_cfg
from torch.testing import assert_close

from mmpe.layers import MultiheadAttention

PEG = dict(type='mmpe.PEG')
SINE = dict(type='mmpe.SinePositionalEncoding', normalize=True)


def memory_pos(model, sizes=((4, 6), (2, 6))):
    maps = (torch.randn(2, 16, 4, 6), )
    encoder_inputs, inputs = model.pre_transformer(
        maps, samples(sizes, (4, 6)))
    return encoder_inputs['feat_pos'], inputs['memory_pos']


def test_decoder_keys_share_the_embedding():
    stream, pos = memory_pos(small('detr', [SINE]))
    assert_close(pos, stream.pos(-1), rtol=0, atol=0)


def test_decoder_keys_get_a_sine_when_the_encoder_embeds_nothing():
    _, sine = memory_pos(small('detr', [SINE]))
    for items in [], [PEG]:
        stream, pos = memory_pos(small('detr', items))
        assert stream.pos(-1) is None
        assert_close(pos, sine, rtol=0, atol=0)


def test_decoder_keys_without_embedding_are_zeros_not_none():
    # For None, MMCV would add the queries' embedding when shapes agree.
    _, pos = memory_pos(small('detr', [SINE], memory_positional_encoding=None))
    assert pos.shape == (2, 24, 16)
    assert pos.abs().max() == 0


def test_decoder_keys_have_an_embedding_of_their_own():
    learned = dict(type='mmpe.LearnedPositionalEncoding')
    model = small('detr', [PEG], memory_positional_encoding=[learned])
    _, pos = memory_pos(model)
    rows = model.memory_positional_encoding.learned.row_embed.weight
    assert_close(pos[0, 0, 8:], rows[0], rtol=0, atol=0)


@pytest.mark.parametrize('value,names', [
    ('sine', "'sine'"),
    ([PEG], 'PEG embeds nothing'),
])
def test_bad_memory_encoding(value, names):
    with pytest.raises((TypeError, ValueError), match=names):
        small('detr', [SINE], memory_positional_encoding=value)


def test_deformable_decoders_have_no_keys():
    with pytest.raises(TypeError, match='DeformableDETR.*no keys'):
        small('deformable', [SINE], memory_positional_encoding=None)


@pytest.mark.parametrize('kind', ['detr', 'deformable'])
def test_grids_may_not_shrink(kind):
    with pytest.raises(ValueError, match='zero_padding=False'):
        small(kind, [dict(PEG, zero_padding=False)])


def test_too_many_checkpointed_layers():
    cfg = small_cfg('detr')
    cfg.encoder.num_cp = 3
    with pytest.raises(ValueError, match='num_cp=3'):
        build(cfg)


@pytest.mark.parametrize('kind', ['detr', 'deformable'])
def test_encodings_keep_their_initial_values(kind):
    # MMDetection fills its encoder with xavier_uniform_; encodings live
    # elsewhere. Bound and spread are those of nn.Conv2d for 3x3 depthwise.
    model = small(kind, [PEG], dims=64)
    weight = model.positional_encoding.peg.blocks[0][0].conv.weight
    assert 0.25 < weight.abs().max() <= 1 / 3
    assert 0.15 < weight.std() < 0.23
    learned = small(kind, [dict(type='mmpe.LearnedPositionalEncoding')])
    rows = learned.positional_encoding.learned.row_embed.weight
    assert 0 <= rows.min() < 0.05 and 0.95 < rows.max() < 1


def test_a_second_encoding_of_a_kind_gets_a_number():
    model = small('detr', [PEG, SINE, dict(PEG, positions=[1])])
    assert [n for n, _ in model.positional_encoding.named_children()
            ] == ['peg', 'sine', 'peg2']


def test_attention_is_fused_everywhere():
    model = small('detr', [SINE])
    for coder in model.encoder, model.decoder:
        for layer in coder.layers:
            assert type(layer.self_attn) is MultiheadAttention
    assert type(layer.cross_attn) is MultiheadAttention


def test_config_is_not_changed_by_building():
    cfg = small_cfg('detr')
    cfg.encoder.num_cp = 1
    before = cfg.encoder.to_dict()
    from mmpe.detectors import DETR
    arguments = {k: v for k, v in cfg.items() if k != 'type'}
    arguments.pop('data_preprocessor')
    DETR(**arguments)
    assert cfg.encoder.num_cp == before['num_cp']
