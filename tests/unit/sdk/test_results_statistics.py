"""mosaic_sdk.results: the numbers. Known answers are those of SciPy 1.17 (and of rliable, which uses its functions)."""

import math
import random

import pytest
from mosaic_sdk.results.averages import iqm, mean, quantile, spread
from mosaic_sdk.results.comparison import adjust, compare, probability_of_improvement
from mosaic_sdk.results.resampling import _resampled_means, holm, mean_interval, resamples_for, sign_flip_p

X = [0.31, 0.95, 0.0, 0.72, 0.88, 0.93, 0.4, 0.61, 0.9, 0.97]
Y = [0.1, 0.0, 0.3, 0.0, 0.55, 0.2, 0.4, 0.7, 0.15, 0.05]


def by_seed(values):
    return dict(enumerate(values))


@pytest.mark.parametrize(
    ("values", "expected"),  # scipy.stats.trim_mean(values, 0.25)
    [([3.0], 3.0), ([1.0, 2.0, 30.0], 11.0), ([1.0, 2.0, 3.0, 50.0], 2.5), (X, 0.74), (Y, 0.2)],
)
def test_the_iqm_is_the_mean_of_the_middle_half(values, expected):
    assert iqm(values) == pytest.approx(expected)


def test_averages_of_nothing_and_of_infinities_are_nan():
    assert math.isnan(mean([]))
    assert math.isnan(iqm([]))
    assert math.isnan(mean([math.inf, -math.inf]))


def test_averages_of_the_largest_numbers_do_not_overflow():
    assert mean([1.7e308, 1.7e308]) == 1.7e308
    assert spread([1.2e308, -1.2e308]) == pytest.approx(1.2e308)
    assert mean_interval([1.7e308, 1.6e308]) == (1.6e308, 1.7e308)


def test_a_quantile_is_interpolated():
    assert quantile([1.0, 2.0, 3.0, 10.0], 0.025) == pytest.approx(1.075)  # numpy.quantile
    assert quantile([5.0], 0.975) == 5.0


def test_the_interval_is_that_of_a_percentile_bootstrap():
    differences = [x - y for x, y in zip(X, Y, strict=True)]

    low, high = mean_interval(differences)

    # scipy.stats.bootstrap(method="percentile"), 100,000 resamples.
    assert low == pytest.approx(0.154, abs=0.01)
    assert high == pytest.approx(0.680, abs=0.01)


@pytest.mark.parametrize("n", [2, 3, 200, 256, 300])
def test_every_value_is_equally_likely_to_be_drawn(n):
    for place in (0, n - 1):
        values = [float(index == place) for index in range(n)]
        means = _resampled_means(values)

        assert mean(means) == pytest.approx(1 / n, rel=0.1)


def test_two_computations_give_equal_numbers():
    assert mean_interval(X) == mean_interval(X)
    assert sign_flip_p([*X, *X]) == sign_flip_p([*X, *X])


def test_one_number_has_no_interval_and_equal_numbers_have_one_without_width():
    assert mean_interval([0.3]) is None
    assert mean_interval([0.1, 0.1, 0.1]) == (0.1, 0.1)


def test_many_numbers_cost_a_bounded_amount_of_work():
    values = [random.Random(1).gauss(5, 2) for _ in range(10_000)]

    low, high = mean_interval(values)

    assert high - low == pytest.approx(2 * 1.96 * spread(values) / 100, rel=0.001)
    assert [resamples_for(count) for count in (1, 200, 1000, 100_000)] == [10_000, 10_000, 2_000, 1_000]


@pytest.mark.parametrize(
    ("left", "right", "expected"), [(X, Y, 0.845), (Y, X, 0.155), (X, X, 0.5), ([1], [0, 1, 2], 0.5)]
)
def test_the_probability_of_improvement_is_that_of_rliable(left, right, expected):
    assert probability_of_improvement(left, right) == pytest.approx(expected)  # mannwhitneyu(…).statistic / (n * m)


@pytest.mark.parametrize(
    ("differences", "expected"),  # scipy.stats.permutation_test(permutation_type="samples"), exact
    [([1.0], 1.0), ([1.0, 2.0, 3.0], 0.25), ([0.0, 0.0], 1.0), ([], 1.0), ([1.0, -1.0], 1.0), ([0.1] * 6, 0.03125)],
)
def test_the_p_value_of_few_differences_is_exact(differences, expected):
    assert sign_flip_p(differences) == pytest.approx(expected)


def test_the_p_value_of_many_differences_is_sampled():
    differences = [random.Random(4).gauss(0.3, 1) for _ in range(40)]
    assert sign_flip_p([1.0] * 40) == pytest.approx(1 / 10_001)
    assert 0 < sign_flip_p(differences) <= 1


def test_p_values_are_adjusted_by_holms_method():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_a_comparison_uses_the_seeds_that_both_have_played():
    pair = compare("a", {1: 1.0, 2: 5.0, 3: 2.0}, "b", {2: 3.0, 3: 2.0, 4: 100.0})

    assert (pair.n, pair.difference, pair.wins, pair.ties, pair.losses) == (2, 1.0, 1, 1, 0)


def test_without_common_seeds_nothing_is_claimed():
    pair = compare("a", {1: 1.0}, "b", {2: 3.0})

    assert (pair.n, pair.difference, pair.interval, pair.probability, pair.is_clear) == (0, None, None, None, False)


def test_one_common_seed_has_a_difference_but_no_interval():
    pair = compare("a", {1: 1.0}, "b", {1: 3.0})

    assert (pair.n, pair.difference, pair.interval, pair.is_clear) == (1, -2.0, None, False)


def test_equal_returns_are_ties():
    pair = compare("a", by_seed(X), "b", by_seed(X))

    assert (pair.difference, pair.interval, pair.probability, pair.ties) == (0.0, (0.0, 0.0), 0.5, 10)
    assert not pair.is_clear


def test_a_difference_on_every_one_of_five_seeds_may_still_be_luck():
    few = compare("a", by_seed([1.0] * 5), "b", by_seed([0.0] * 5))
    more = compare("a", by_seed([1.0] * 6), "b", by_seed([0.0] * 6))

    assert few.excludes_zero
    assert not few.is_clear
    assert more.is_clear


def test_many_comparisons_raise_the_bar():
    better, worse = by_seed([1.0] * 6), by_seed([0.0] * 6)

    alone = adjust([compare("a", better, "b", worse)])
    among = adjust(
        [compare("a", better, "b", worse), compare("a", better, "c", worse), compare("b", worse, "c", worse)]
    )

    assert alone[0].is_clear
    assert not among[0].is_clear
    assert among[0].p_adjusted == pytest.approx(3 * 0.03125)


def test_differences_that_are_too_large_for_a_float_are_left_out():
    pair = compare("a", {1: 1.7e308, 2: 1.0}, "b", {1: -1.7e308, 2: 0.0})

    assert (pair.n, pair.difference) == (1, 1.0)
