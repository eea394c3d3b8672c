"""Differences between groups, and the sentences about them."""

import itertools

import numpy as np
import pytest
from mosaic_sdk.results.averages import iqm as sdk_iqm
from mosaic_sdk.results.comparison import probability_of_improvement as sdk_probability

from mosaic.stats.averages import AVERAGES, iqm
from mosaic.stats.difference import Difference, adjust, difference, runs_needed
from mosaic.stats.estimate import estimate, estimate_all
from mosaic.stats.improvement import probability_of_improvement
from mosaic.stats.permutation import permutation_p
from mosaic.stats.wording import LOWER, NEITHER, sentence


def runs(*values):
    return [np.array(values, float)]


def told(left, right, **options):
    (pair,) = adjust([difference("ppo", left, "dqn", right)])
    return sentence(pair, **options)


def test_an_interval_that_contains_zero_is_called_nothing():
    text = told(runs(100, 140, 220), runs(90, 120, 140))

    assert text.startswith("ppo and dqn: no clear difference: +36.67 [")
    assert "with 3 seeds each; the interval contains 0, so nothing can be said" in text
    assert text.endswith("about 9 more seeds each would halve it.")


def test_three_seeds_are_never_enough_for_a_clear_difference():
    text = told(runs(500, 501, 502), runs(1, 2, 3))

    assert "no clear difference: +499 [" in text
    assert text.endswith("too few seeds to rule out luck, which needs at least 4 each.")


def test_a_clear_difference_is_told_with_its_interval_in_either_order():
    high, low = runs(480, 490, 500, 495, 470), runs(200, 210, 190, 220, 205)

    text, turned = told(high, low), told(low, high)

    assert text.startswith("ppo beats dqn by ")
    assert "in IQM with 5 seeds each, probability of improvement 1.00." in text
    assert turned.startswith("dqn beats ppo by 28")
    assert "probability of improvement 1.00." in turned


def test_what_is_better_depends_on_the_metric():
    high, low = runs(480, 490, 500, 495, 470), runs(200, 210, 190, 220, 205)

    assert told(high, low, better=NEITHER).startswith("ppo is higher than dqn by ")
    assert told(high, low, better=LOWER).startswith("dqn beats ppo by ")
    assert "(lower is better)" in told(high, low, better=LOWER)


def test_luck_is_not_ruled_out_by_an_interval_alone():
    # The bootstrap's interval excludes 0, the permutation test does not.
    pair = difference("a", runs(10, 11, 12, 20), "b", runs(5, 9.5, 10.5, 8))
    text = sentence(pair)

    assert pair.excludes_zero
    assert not pair.is_clear
    assert "luck is not ruled out (p = 0.0" in text


def test_one_seed_says_nothing():
    assert told(runs(3), runs(1, 2)) == ("ppo and dqn: +1.5 with 1 and 2 seeds. One seed says nothing about others.")


def test_a_group_without_values_cannot_be_compared():
    assert told(runs(), runs(1, 2)) == "ppo and dqn cannot be compared: ppo has no seed with a value."


def test_equal_values_are_called_the_same():
    assert told(runs(5, 5), runs(5, 5), unit="run") == "ppo and dqn have the same values with 2 runs each."


def test_many_comparisons_need_more_to_be_clear():
    left, right = runs(11, 12, 13, 14), runs(1, 2, 3, 4)
    alone = adjust([difference("a", left, "b", right)])
    together = adjust([difference("a", left, "b", right)] * 3)

    assert alone[0].is_clear
    assert not any(pair.is_clear for pair in together)
    assert together[0].p_adjusted == pytest.approx(3 * alone[0].p_value)
    assert runs_needed(1) == 4
    assert "needs at least 5 each" in sentence(together[0])


def test_the_exact_test_tries_every_division():
    left, right = np.array([1.0, 4, 6, 4]), np.array([0.5, 2, 3, 9, 4])
    pooled = np.concatenate([left, right])
    divisions = [
        sdk_probability(pooled[list(chosen)].tolist(), np.delete(pooled, chosen).tolist()) - 0.5
        for chosen in itertools.combinations(range(9), 4)
    ]
    seen = sdk_probability(left.tolist(), right.tolist()) - 0.5

    assert permutation_p([left], [right]) == pytest.approx(np.mean(np.abs(divisions) >= abs(seen) - 1e-9))


def test_without_ties_it_is_the_test_of_mann_and_whitney():
    # scipy.stats.mannwhitneyu([1.1, 2.2, 7, 8, 9.5], [0.3, 1.5, 2.5, 3.5, 4], method="exact"): U = 18, p = 0.3095238
    p = permutation_p(runs(1.1, 2.2, 7, 8, 9.5), runs(0.3, 1.5, 2.5, 3.5, 4))

    assert p == pytest.approx(0.3095238, abs=1e-6)


def test_a_sampled_test_is_close_to_the_exact_one(monkeypatch):
    generator = np.random.default_rng(3)
    left, right = [generator.normal(0.5, 1, 8)], [generator.normal(0, 1, 8)]
    exact = permutation_p(left, right)

    monkeypatch.setattr("mosaic.stats.permutation.MOST_EXACT", 1)

    assert permutation_p(left, right) == pytest.approx(exact, abs=0.02)


def test_runs_are_exchanged_within_their_environment_only():
    easy, hard = np.array([100.0, 101.0]), np.array([1.0, 2.0])

    # Across the environments the difference would drown in their own difference.
    assert permutation_p([easy + 5, hard + 5], [easy, hard]) == pytest.approx(2 / 36)


def test_averages_and_order_that_disagree_are_not_a_clear_difference():
    # Every run of b but one is higher, and that one is far below.
    left, right = runs(10, 11, 12, 13, 14, 15), runs(20, 21, 22, 23, 24, -900)
    (pair,) = adjust([difference("a", left, "b", right, "mean")])

    assert pair.difference > 0 > pair.probability - 0.5
    assert not pair.is_clear


@pytest.mark.parametrize("count", range(1, 12))
def test_the_averages_agree_with_those_of_evaluations(count):
    values = np.random.default_rng(count).normal(0, 1, count).round(1)
    others = np.random.default_rng(99).normal(0, 1, 5).round(1)

    assert float(iqm([values])) == pytest.approx(sdk_iqm(values.tolist()))
    found = probability_of_improvement([values], [others])
    assert found.value == pytest.approx(sdk_probability(values.tolist(), others.tolist()))


@pytest.mark.parametrize("average", AVERAGES)
def test_the_same_numbers_give_the_same_interval(average):
    values = runs(3, 1, 4, 1, 5, 9)

    first, second = (estimate(values, AVERAGES[average]) for _ in range(2))

    assert first == second
    assert first.interval[0] < first.value < first.interval[1]
    shared = estimate_all(values)[average]
    assert shared.value == first.value
    assert shared.interval == pytest.approx(first.interval)


@pytest.mark.parametrize(("probability", "is_clear"), [(0.8, True), (0.5, False), (0.3, False), (None, False)])
def test_a_difference_is_clear_only_if_the_better_group_is_also_better_more_often(probability, is_clear):
    found = Difference(
        *("a", "b", 10, 10, "mean"), difference=5.0, interval=(1.0, 9.0), probability=probability, p_adjusted=0.01
    )

    assert found.is_clear == is_clear
