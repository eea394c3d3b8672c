import math

import pytest

from mosaic.present.axes import axes_of, choose, duration_step, place_text, shared, tick_step, tick_texts


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0, 500, 1000, 1500], ["0", "0.5k", "1.0k", "1.5k"]),
        ([0, 200_000, 400_000], ["0", "200k", "400k"]),
        ([1.2e6, 1.4e6], ["1.2M", "1.4M"]),
        ([0, 0.25, 0.5], ["0", "0.25", "0.50"]),
        ([-100, 0, 100], ["-100", "0", "100"]),
        ([1000], ["1k"]),
        ([0, 0.0001, 0.0002], ["0", "0.0001", "0.0002"]),
        ([], []),
    ],
)
def test_ticks_have_one_unit_and_just_enough_decimals(values, texts):
    assert tick_texts(values, "env steps") == texts


def test_ticks_of_time_are_durations():
    assert tick_texts([0, 30, 60, 90, 3600, 5400, 86400], "time") == ["0s", "30s", "1m", "1m30s", "1h", "1h30m", "1d"]


@pytest.mark.parametrize(("span_s", "step"), [(60, 15), (600, 120), (7200, 1800), (1.0, 0.2), (0, 1), (1e9, 5e8)])
def test_durations_are_divided_as_clocks_are(span_s, step):
    assert duration_step(span_s, 5 if span_s < 1e9 else 2) == step


def test_curves_share_the_axes_that_all_of_them_have():
    episodes = axes_of("env steps", "episode/return", has_seconds=True)
    loss = axes_of("steps", "losses/value_loss", has_seconds=True)

    assert episodes == ("env steps", "episodes", "time")
    assert shared([episodes, loss]) == ("env steps", "time")
    assert shared([]) == ()
    assert axes_of("episodes", "episode/return", has_seconds=False) == ("episodes",)


def test_an_axis_that_is_not_possible_is_replaced():
    assert choose("episodes", ("env steps", "time")) == "env steps"
    assert choose("time", ("env steps", "time")) == "time"
    assert choose("time", ()) == "time"


def test_a_place_is_named_in_words():
    assert place_text(12345, "env steps") == "12,345 env steps"
    assert place_text(132, "episodes") == "episode 132"
    assert place_text(150, "time") == "2m30s"


@pytest.mark.parametrize(("low", "high"), [(17, 190), (-0.02, 0.11), (499, 501), (0.1, 0.19), (1e6, 1.9e6), (0, 500)])
def test_a_low_chart_has_at_least_two_ticks(low, high):
    step = tick_step(low, high, 2)
    ticks = [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
    assert 2 <= len(ticks) <= 4
