"""Differences, their intervals and what they are called."""
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from mmpe.evaluation.compare import (Difference, difference, discoveries,
                                     draw_images, seeds_needed)
from mmpe.evaluation.verdict import judge

TOOL = Path(__file__).parents[2] / 'tools/check_intervals.py'


@pytest.fixture(scope='module')
def simulation():
    spec = importlib.util.spec_from_file_location('check_intervals', TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_resample_has_as_many_images():
    drawn = draw_images(30, 200, seed=3)
    assert (drawn.sum(1) == 30).all()
    assert abs(drawn.mean() - 1) < 1e-9
    # The share of images that a resample lacks, (1 - 1/30)**30.
    assert abs((drawn == 0).mean() - (29 / 30)**30) < 0.02
    np.testing.assert_array_equal(drawn, draw_images(30, 200, seed=3))
    assert (drawn != draw_images(30, 200, seed=4)).any()


def test_equal_runs_differ_by_exactly_nothing():
    own, drawn = np.array([40.]), np.random.rand(1, 50)
    d = difference(own, drawn, own, drawn, 100)
    assert (d.value, d.error) == (0, 0)
    assert d.interval() == (0, 0)
    assert d.p_value == 1
    assert judge(d, 0.3, True).word == 'equal within the margin'


def test_two_sides_of_images_are_compared_in_pairs():
    """What all runs share, hard images, is not in the interval."""
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 5, 400)
    base = hard[None]
    own = base + 1 + rng.normal(0, 0.1, (1, 400))
    d = difference(np.array([31.]), own, np.array([30.]), base, 500)
    assert d.value == 1 and 0.09 < d.error < 0.11


def test_seeds_alone_are_welchs_t():
    own, base = np.array([3., 5., 4., 6.]), np.array([1., 2., 4.])
    drawn = np.zeros((4, 9)), np.zeros((3, 9))
    d = difference(own, drawn[0], base, drawn[1], 10)
    expected = stats.ttest_ind(own, base, equal_var=False)
    assert d.p_value == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval(0.95)
    assert d.interval() == pytest.approx((low, high))
    assert d.covers_seeds


@pytest.mark.parametrize('runs', [(1, 1), (2, 5), (5, 2)])
def test_few_seeds_are_not_in_the_interval(runs):
    values = [np.arange(n, dtype=float) for n in runs]
    drawn = [np.ones((n, 9)) * np.arange(9) for n in runs]
    d = difference(values[0], drawn[0], values[1], drawn[1] * 2, 10)
    assert not d.covers_seeds and d.seed_error == 0
    verdict = judge(d, 0.3, True)
    assert verdict.about == 'these checkpoints'
    assert 'noise of training, about 0.3 AP' in verdict.reason


def test_numbers_that_are_not_there():
    one, drawn = np.array([1.]), np.ones((1, 5))
    assert difference(one, drawn, np.array([np.nan]), drawn, 9) is None
    some = drawn.copy()
    some[0, 2] = np.nan  # a resample without objects
    assert difference(one, some, one, drawn, 9).value == 0


def made(value, image_error, seed_error=0., seeds=(3, 3), degrees=100.):
    return Difference(value, image_error, seed_error, degrees, seeds)


@pytest.mark.parametrize('d, word', [
    (made(1., 0.2), 'better'),
    (made(-1., 0.2), 'worse'),
    (made(0.1, 0.05), 'equal within the margin'),
    (made(0.1, 0.3), "can't tell"),
    (made(0.29, 0.05), 'better'),
])
def test_verdicts(d, word):
    verdict = judge(d, 0.3, attributable=True)
    assert verdict.word == word
    assert f'{d.value:+.2f}' in verdict.reason
    assert verdict.about == 'the encoding'


def test_what_is_not_the_encodings_is_not_attributed_to_it():
    verdict = judge(made(1., 0.2), 0.3, attributable=False)
    assert verdict.about != 'the encoding'
    assert 'Not attributable to the encoding' in verdict.reason


def test_seeds_needed_take_what_runs_show():
    d = made(1., 0.2, seeds=(1, 3))
    assumed = judge(d, 0.3, True)
    assert assumed.spread_is_assumed and assumed.seed_spread == 0.15
    shown = judge(d, 0.3, True, seed_spread=2.)
    assert not shown.spread_is_assumed
    assert '2.00 AP from seed to seed' in shown.reason
    assert shown.seeds_needed > assumed.seeds_needed
    # 0.3 AP between two seeds is COCO's, and not that of 16 images.
    few = judge(d, 0.3, True, num_images=16)
    assert few.seed_spread is None and few.seeds_needed is None


def test_seeds_needed():
    assert seeds_needed(made(1., 0.), 0.15) == 3
    few = seeds_needed(made(0.2, 0.), 0.15)
    error = 0.15 * np.sqrt(2 / few)
    assert 0.2 > error * stats.t.ppf(0.975, 2 * few - 2)
    error = 0.15 * np.sqrt(2 / (few - 1))
    assert 0.2 < error * stats.t.ppf(0.975, 2 * few - 4)
    assert seeds_needed(made(0.2, 0.2), 0.15) is None  # the images are too few


def test_false_discoveries_are_few():
    assert discoveries([]).tolist() == []
    assert discoveries([0.04] * 5).all()
    p = [0.001, 0.5, 0.02, 0.9, 0.03]
    assert discoveries(p).tolist() == [True, False, True, False, True] or \
        discoveries(p).sum() == 1
    rng = np.random.default_rng(0)
    false = [discoveries(rng.random(80)).any() for _ in range(400)]
    assert 0.02 < np.mean(false) < 0.09


@pytest.mark.parametrize('seeds', [1, 3])
def test_intervals_hold_the_truth(simulation, seeds):
    """The short form of tools/check_intervals.py, which has the numbers: 60
    trials are below 52 once in a thousand times."""
    share = simulation.coverage(
        60, seeds, images=120, resamples=60, truth_images=1500)
    assert share >= 52 / 60
