"""Curves of several runs on one grid."""

import numpy as np
import pytest

from mosaic.stats.averages import AVERAGES, order_weights
from mosaic.stats.bands import QUARTILES, band_of, stratified_band
from mosaic.stats.estimate import estimate
from mosaic.stats.scales import scale_of
from mosaic.stats.traces import Trace, common_range, grid_for, on_grid


def line(slope, last=100, points=101):
    steps = np.linspace(0, last, points)
    return Trace.of(steps, slope * steps)


def test_the_common_range_ends_where_the_shortest_run_ends():
    assert common_range([line(1, 100), line(1, 60)]) == (0, 60)
    assert common_range([Trace.of([0, 1], [0, 0]), Trace.of([5, 6], [0, 0])]) is None


def test_a_curve_on_a_grid_keeps_the_mean_of_its_values():
    trace = Trace.of(range(1, 101), np.arange(1, 101) % 2)

    values = on_grid(trace, np.array([10.0, 50.0, 100.0]))

    assert values == pytest.approx([0.5, 0.5, 0.5])


def test_a_point_counts_as_often_as_it_has_values():
    trace = Trace.of([5, 10], [1.0, 4.0], [3, 1])

    assert on_grid(trace, np.array([10.0])) == pytest.approx([1.75])
    assert trace.newest(2) == pytest.approx(2.5)
    assert trace.newest(100) == pytest.approx(1.75)


def test_between_its_points_a_curve_is_interpolated_and_beyond_its_end_there_is_none():
    values = on_grid(Trace.of([0, 10], [0.0, 5.0]), np.array([0.0, 4.0, 10.0, 12.0]))

    assert values[:3] == pytest.approx([0, 2, 5])
    assert np.isnan(values[3])


def test_values_that_are_not_finite_and_steps_out_of_order_do_no_harm():
    trace = Trace.of([3, 1, 2, 4], [30.0, 10.0, np.nan, np.inf])

    assert trace.step.tolist() == [1, 3]
    assert trace.value.tolist() == [10, 30]


def test_the_area_is_the_mean_over_steps_and_not_over_points():
    dense_at_the_start = Trace.of([0, 1, 2, 3, 4, 10], [0.0, 0, 0, 0, 0, 6])

    assert dense_at_the_start.area(0, 10) == pytest.approx(1.8)
    assert line(2).area(10, 20) == pytest.approx(30)


@pytest.mark.parametrize("average", AVERAGES)
def test_a_band_is_the_bootstrap_interval_at_each_step(average):
    generator = np.random.default_rng(5)
    traces = [Trace.of(range(50), generator.normal(0, 1, 50)) for _ in range(9)]
    grid = np.arange(50.0)

    band = band_of(traces, grid, average)
    at_20 = estimate([np.array([trace.value[20] for trace in traces])], AVERAGES[average])

    assert band.middle[20] == pytest.approx(at_20.value)
    assert (band.low[20], band.high[20]) == pytest.approx(at_20.interval, abs=0.12)
    assert np.all(band.low <= band.middle)
    assert np.all(band.middle <= band.high)


def test_a_band_of_quartiles_shows_the_runs():
    band = band_of([line(slope) for slope in (1, 2, 3, 4, 5)], np.arange(101.0), "median", QUARTILES)

    assert (band.low[-1], band.middle[-1], band.high[-1]) == pytest.approx((200, 300, 400))


def test_where_runs_have_ended_the_others_go_on_and_are_counted():
    traces = [line(1, 100), line(2, 100), line(3, 50, 51)]

    band = band_of(traces, np.arange(101.0), "mean")

    assert band.runs[[50, 51, 100]].tolist() == [3, 2, 2]
    assert band.middle[[50, 75, 100]] == pytest.approx([100, 112.5, 150])


def test_one_run_has_no_band():
    band = band_of([line(1)], np.arange(101.0))

    assert band.middle == pytest.approx(band.step)
    assert np.isnan(band.low).all()


def test_a_grid_has_no_more_points_than_the_runs():
    assert len(grid_for([line(1, points=7)] * 3, 0, 100)) == 7
    assert len(grid_for([line(1, points=9000)], 0, 100, 2000)) == 2000


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9])
def test_weights_of_sorted_values_give_the_average(average, count):
    values = np.sort(np.random.default_rng(count).normal(0, 1, count))

    assert order_weights(average, count) @ values == pytest.approx(float(AVERAGES[average]([values])))


def test_scales_are_known_by_the_ids_of_environments():
    assert scale_of("CartPole-v1").normalised(np.array([250.0])) == pytest.approx([0.5])
    for name in ("ALE/MsPacman-v5", "MsPacmanNoFrameskip-v4", "atari_ms_pacman"):
        assert scale_of(name).high == 6951.6
    assert scale_of("Pong") is None
    assert scale_of("Walker2d-v5") is None


@pytest.mark.parametrize("average", AVERAGES)
def test_the_curve_over_environments_is_their_average_with_a_stratified_interval(average):
    easy, hard = [line(slope) for slope in (1, 2, 4)], [line(slope) for slope in (10, 12)]
    values = [np.array([100.0, 200.0, 400.0]), np.array([1000.0, 1200.0])]  # at the last step

    band = stratified_band([easy, hard], np.linspace(0, 100, 101), average)

    assert band.middle[-1] == pytest.approx(AVERAGES[average](values))
    whole = estimate(values, AVERAGES[average])
    assert (band.low[-1], band.high[-1]) == pytest.approx(whole.interval, rel=0.05)
    assert band.runs.tolist() == [5] * 101


def test_the_quartiles_over_environments_are_those_of_all_runs():
    band = stratified_band([[line(1), line(2)], [line(3), line(4), line(5)]], np.arange(101.0), "iqm", QUARTILES)

    assert (band.low[10], band.high[10]) == (20, 40)
