"""What a user writes in a detector's config, and what goes wrong."""
import pytest
import torch
from models import build, move_parameters, samples, small, small_cfg
from torch.testing import assert_close

from mmpe.layers import MultiheadAttention, PositionStream

PEG = dict(type='mmpe.PEG')
SINE = dict(type='mmpe.SinePositionalEncoding', normalize=True)


def memory_pos(model, sizes=((4, 6), (2, 6))):
    maps = (torch.randn(2, 16, 4, 6), )
    encoder_inputs, inputs = model.pre_transformer(
        maps, samples(sizes, (4, 6)))
    pos = inputs['memory_pos']
    if isinstance(pos, PositionStream):
        pos = pos.pos(-1)
    return encoder_inputs['feat_pos'], pos


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


class TestLaPE:
    LAPE = dict(type='mmpe.LaPE', decoder=True)

    def states(self, model, pos_of_layer):
        """Of a decoder whose layers are given these key embeddings."""
        maps = (torch.randn(2, 16, 4, 6), )
        data = samples([(4, 6), (2, 6)], (4, 6))
        encoder_inputs, inputs = model.pre_transformer(maps, data)
        memory = model.forward_encoder(**encoder_inputs)
        tmp, _ = model.pre_decoder(**memory)
        inputs.update(tmp)
        out = model.forward_decoder(**inputs)['hidden_states']
        omega = inputs['memory_pos'].pos(-1)
        for i, layer in enumerate(model.decoder.layers):
            layer.register_forward_pre_hook(
                lambda m, args, kwargs, i=i:
                (args, dict(kwargs, key_pos=pos_of_layer(i, omega))),
                with_kwargs=True)
        inputs['memory_pos'] = omega
        return out, model.forward_decoder(**inputs)['hidden_states']

    @pytest.mark.parametrize('form', ['independent', 'progressive'])
    def test_decoder_keys_have_norms_of_their_own(self, form):
        model = small('detr', [SINE, dict(self.LAPE, form=form)]).eval()
        move_parameters(model)
        norms = model.memory_positional_encoding.lape.norms
        assert norms[0].weight is not model.positional_encoding.lape.norms[
            0].weight

        def pos_of_layer(i, omega):
            if form == 'independent':
                return norms[i](omega)
            for norm in norms[:i + 1]:
                omega = norm(omega)
            return omega

        assert_close(*self.states(model, pos_of_layer))

    def test_without_decoder_keys_are_as_they_were(self):
        lape = dict(type='mmpe.LaPE')
        model = small('detr', [SINE, lape]).eval()
        assert not list(model.memory_positional_encoding.parameters())
        assert_close(*self.states(model, lambda i, omega: omega))

    def test_it_needs_an_embedding(self):
        with pytest.raises(ValueError, match='LaPE changes the embedding'):
            small('detr', [dict(type='mmpe.LaPE')])
        small('deformable', [dict(type='mmpe.LaPE')])  # the level's

    def test_deformable_decoders_have_no_keys(self):
        with pytest.raises(ValueError, match='decoder=True'):
            small('deformable', [SINE, self.LAPE])

    @pytest.mark.parametrize('own', [None, [SINE]])
    def test_keys_with_an_embedding_of_their_own(self, own):
        with pytest.raises(ValueError, match='gives them another'):
            small('detr', [SINE, self.LAPE], memory_positional_encoding=own)

    @pytest.mark.parametrize('order', [1, -1])
    def test_all_layers_must_have_the_embedding(self, order):
        items = [dict(SINE, layers=[0]), dict(type='mmpe.LaPE')][::order]
        with pytest.raises(ValueError, match='leave layers out'):
            small('detr', items)

    @pytest.mark.parametrize('arguments,says', [
        (dict(form='both'), 'form must be'),
        (dict(scale='vector'), 'scale must be'),
        (dict(num_layers=3), 'num_layers must be 1 to 2'),
        (dict(num_layers=0), 'num_layers must be 1 to 2'),
        (dict(eta=1), "has no argument 'eta'.*num_layers"),
    ])
    def test_bad_arguments(self, arguments, says):
        with pytest.raises((TypeError, ValueError), match=says):
            small('detr', [SINE, dict(type='mmpe.LaPE', **arguments)])

    def test_layers_after_the_last_have_no_position(self):
        model = small('detr', [SINE, dict(type='mmpe.LaPE', num_layers=1)])
        stream, _ = memory_pos(model)
        stream.enter(0, torch.zeros(2, 24, 16))
        stream.leave(0, torch.zeros(2, 24, 16))
        assert stream.pos(0) is not None
        assert stream.pos(1) is None


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
