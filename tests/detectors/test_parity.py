"""Unmodified MMDetection configs with ``type='mmpe.X'`` are the same models."""
import pytest
import torch
from models import BASES, build, samples, zoo_model
from torch.testing import assert_close


def no_dropout(cfg):
    for coder in cfg.encoder, cfg.decoder:
        for part in coder.layer_cfg.values():
            part.update(
                dict(ffn_drop=0.) if 'feedforward_channels' in
                part else dict(dropout=0.))
    return cfg


@pytest.fixture(scope='module', params=BASES)
def pair(request):
    cfg = no_dropout(zoo_model(request.param))
    # The runner's initialisation, from the same seed.
    return build(cfg, scope='mmdet'), build(cfg)


def batch(dtype=torch.float32):
    # Masked, and large enough for the two stages' 300 queries.
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(2, 3, 128, 160, generator=generator).to(dtype)
    targets = samples([(128, 130), (100, 160)], (128, 160))
    for target in targets:
        target.gt_instances.bboxes = target.gt_instances.bboxes.to(dtype)
    return images, targets


def test_same_initial_weights(pair):
    theirs, ours = (model.state_dict() for model in pair)
    assert list(theirs) == list(ours)
    assert_close(theirs, ours, rtol=0, atol=0)


@pytest.mark.parametrize('masked', [True, False])
def test_same_predictions(pair, masked):
    images, targets = batch()
    if not masked:
        targets = samples([(128, 160)] * 2, (128, 160))
    with torch.no_grad():
        theirs, ours = (
            model.eval()._forward(images, targets) for model in pair)
    for a, b in zip(theirs, ours):
        if a is not None:
            assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_same_losses_and_gradients(pair):
    single, losses, gradients = [], [], []
    for model in pair:
        model.train()
        with torch.no_grad():
            single.append(model.loss(*batch()))
        model.double()
        model.zero_grad()
        loss = model.loss(*batch(torch.float64))
        sum(v.sum() for v in loss.values()).backward()
        losses.append(loss)
        gradients.append({n: p.grad for n, p in model.named_parameters()})
        model.float()
    assert_close(single[0], single[1], rtol=1e-5, atol=1e-5)
    assert_close(losses[0], losses[1], rtol=1e-9, atol=1e-9)
    assert_close(gradients[0], gradients[1], rtol=1e-7, atol=1e-9)
