"""What a user writes in the list, and what goes wrong."""
import pytest

from mmpe.position import (ImageRPE, PositionEncoding, PositionEncodingList,
                           as_items)

HOST = dict(embed_dims=16, num_heads=2, num_layers=3)


def error(item, kind):
    with pytest.raises(kind) as info:
        PositionEncodingList([item], **HOST)
    return str(info.value)


def test_unknown_encoding_names_the_nearest():
    message = error(dict(type='mmpe.PEGG'), KeyError)
    assert "'mmpe.PEGG'" in message
    assert 'Did you mean mmpe.PEG?' in message
    assert 'mmpe.SinePositionalEncoding' in message


def test_unknown_scope():
    assert "'nope.PEG'" in error(dict(type='nope.PEG'), KeyError)


def test_what_is_no_encoding():
    assert 'mmpe.DETR' in error(dict(type='mmpe.DETR'), TypeError)
    assert 'got 3' in error(3, TypeError)
    assert 'with a type' in error(dict(kernel_size=3), TypeError)


def test_wrong_argument_is_named():
    message = error(dict(type='mmpe.PEG', kernel=3), TypeError)
    assert "mmpe.PEG has no argument 'kernel'" in message
    assert 'Did you mean kernel_size?' in message


def test_leftover_keys_say_so():
    # What a dict instead of a list inherits from MMDetection's config.
    item = dict(type='mmpe.PEG', num_feats=128, normalize=True)
    message = error(item, TypeError)
    assert "'num_feats', 'normalize'" in message
    assert "positional_encoding=[dict(type='mmpe.PEG'" in message


@pytest.mark.parametrize('key', HOST)
def test_widths_come_from_the_host(key):
    message = error({'type': 'mmpe.PEG', key: 4}, TypeError)
    assert f'{key} comes from the model' in message


@pytest.mark.parametrize('argument,value', [
    ('kernel_size', 2),
    ('positions', (3, )),
    ('positions', 0),
    ('positions', (0, 0)),
    ('positions', ()),
    ('kind', 'depth'),
    ('norm_cfg', dict(type='IN')),
    ('act_cfg', dict(type='Rectifier')),
    ('num_convs', 0),
])
def test_wrong_value_names_the_argument(argument, value):
    message = error({'type': 'mmpe.PEG', argument: value}, ValueError)
    assert message.startswith('mmpe.PEG: ')
    assert argument in message


@pytest.mark.parametrize('arguments', [
    dict(num_feats=9),
    dict(dims=3),
    dict(order='zy'),
    dict(dims=1, normalize=True),
])
def test_wrong_sine(arguments):
    message = error(
        dict(type='mmpe.SinePositionalEncoding', **arguments), ValueError)
    assert any(key in message for key in arguments)


@pytest.mark.parametrize('arguments,says', [
    (dict(target=''), "letters of 'qkv'"),
    (dict(target='kx'), "'kx'"),
    (dict(target='kk'), "'kk'"),
    (dict(mode='bias', target='kv'), "mode='bias' does not exist on v"),
    (dict(mode='ctx'), "'ctx'"),
    (dict(method='euc'), "'euc'"),
    (dict(index='log'), "'log'"),
    (dict(init='normal'), "'normal'"),
    (dict(ratio=0.4), 'buckets collapse'),
    (dict(beta=1.0), 'buckets collapse'),
    (dict(layers=[3]), 'layers must be a list of layers from 0 to 2'),
])
def test_wrong_irpe(arguments, says):
    message = error(dict(type='mmpe.ImageRPE', **arguments), ValueError)
    assert says in message


@pytest.mark.parametrize('flag', [
    'rpe-2.0-product-ctx-1', 'rpe-2.0-prod-ctx-1-k', 'rpe-x-product-ctx-1-k',
    'rpe-2.0-product-ctx-2-k', 'rpe-2.0-product-ctx-1-', 'x'
])
def test_flags_are_read_strictly(flag):
    with pytest.raises(ValueError, match='RATIO-METHOD-MODE-SHARED-TARGET'):
        ImageRPE.from_flag(flag)


def test_a_flag_is_an_item():
    PositionEncodingList([ImageRPE.from_flag('rpe-2.0-euc-bias-0-qk')], **HOST)


def test_learned_width():
    message = error(
        dict(type='mmpe.LearnedPositionalEncoding', num_feats=9), ValueError)
    assert 'num_feats=9' in message and '16' in message


def test_a_dict_without_type_is_a_sine():
    assert as_items(dict(num_feats=8)) == [
        dict(num_feats=8, type='mmpe.SinePositionalEncoding')
    ]
    with pytest.raises(TypeError, match='must be a list'):
        as_items(None)


def test_own_encodings_need_no_prefix_in_the_scope_of_the_config():
    # As newcomers write them: MMDetection's registry and its bare name.
    from mmdet.registry import MODELS
    from mmengine.registry import DefaultScope

    @MODELS.register_module(force=True)
    class OwnEncoding(PositionEncoding):
        pass

    with DefaultScope.overwrite_default_scope('mmdet'):
        encodings = PositionEncodingList([dict(type='OwnEncoding')], **HOST)
        assert type(encodings.encodings[0]) is OwnEncoding
        assert 'Did you mean mmdet.OwnEncoding?' in error(
            dict(type='OwnEncodin'), KeyError)
