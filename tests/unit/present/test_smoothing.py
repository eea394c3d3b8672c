import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mosaic.present.smoothing import smooth


@given(st.floats(-1e9, 1e9), st.integers(1, 3000), st.floats(0, 0.999))
@settings(max_examples=50, deadline=None)
def test_a_constant_stays_what_it_is(value, length, weight):
    assert smooth(np.full(length, value), weight).tolist() == [value] * length


@pytest.mark.parametrize("weight", [0.1, 0.6, 0.9, 0.99, 0.999])
def test_it_is_the_debiased_exponential_mean(weight):
    values = np.random.default_rng(0).normal(5, 2, 3000)

    last, expected = 0.0, []
    for index, value in enumerate(values, start=1):
        last = weight * last + (1 - weight) * value
        expected.append(last / (1 - weight**index))

    np.testing.assert_allclose(smooth(values, weight), expected, rtol=1e-9)


def test_gaps_stay_gaps_and_do_not_count():
    values = np.array([1.0, np.nan, 1.0, np.inf, 1.0])

    smoothed = smooth(values, 0.9)

    assert np.isnan(smoothed[[1, 3]]).all()
    assert smoothed[[0, 2, 4]].tolist() == [1, 1, 1]


def test_nothing_but_nan_is_left_alone():
    assert np.isnan(smooth(np.full(5, np.nan), 0.9)).all()
    assert smooth(np.empty(0), 0.9).tolist() == []


def test_without_weight_nothing_changes():
    assert smooth(np.array([3.0, 1.0]), 0.0).tolist() == [3, 1]
