import numpy as np
import pytest

from mosaic.client.events import Curve, Episode, Metric, Step
from mosaic.present import curve_track
from mosaic.present.curve_points import Points
from mosaic.present.curves import CurveStore

RUN = "01RUN"


def metric(seq, step, **values):
    return Metric(seq, seq * 10**9, step, values, b"")


def episode(seq, index, total, global_step=None, agent=""):
    return Episode(seq, seq * 10**9, index, total, 10, 0, agent, True, False, b"", global_step)


def curve(name, steps, values, last_seq=0, axis="steps", counts=None, seconds=None):
    values = [float(value) for value in values]
    counts = counts or [1] * len(steps)
    return Curve(name, list(steps), values, values, values, counts, axis, seconds, 100.0, last_seq)


@pytest.fixture
def store():
    return CurveStore()


def test_history_and_live_values_are_one_curve(store):
    assert store.open(RUN, "loss")

    store.load(RUN, curve("loss", [0, 10], [5, 4], last_seq=2))
    store.add(RUN, [metric(2, 10, loss=4.0), metric(3, 20, loss=3.0)])

    series = store.series(RUN, "loss", "env steps")
    assert series.x.tolist() == [0, 10, 20]
    assert series.y.tolist() == [5, 4, 3]
    assert not store.open(RUN, "loss")


def test_values_that_arrive_before_the_history_are_neither_lost_nor_doubled(store):
    store.open(RUN, "loss")

    store.add(RUN, [metric(2, 10, loss=4.0), metric(3, 10, loss=3.0)])
    store.load(RUN, curve("loss", [0, 10], [5, 4], last_seq=2))

    assert store.series(RUN, "loss", "env steps").y.tolist() == [5, 4, 3]


def test_a_newer_history_replaces_what_it_contains(store):
    store.open(RUN, "loss")
    store.load(RUN, curve("loss", [0], [5], last_seq=1))
    store.add(RUN, [metric(5, 50, loss=1.0), metric(6, 60, loss=0.5)])

    store.load(RUN, curve("loss", [0, 10, 50], [5, 4, 1], last_seq=5))

    assert store.series(RUN, "loss", "env steps").y.tolist() == [5, 4, 1, 0.5]


def test_without_a_sequence_number_steps_decide(store):
    store.open(RUN, "loss")
    store.load(RUN, curve("loss", [0, 10], [5, 4]))

    store.add(RUN, [metric(2, 10, loss=4.0), metric(3, 20, loss=3.0)])

    assert store.series(RUN, "loss", "env steps").x.tolist() == [0, 10, 20]


def test_only_open_curves_are_kept(store):
    store.open(RUN, "loss")
    store.load(RUN, curve("loss", [], []))

    changed = store.add(RUN, [metric(1, 0, loss=1.0, **{f"m{n}": 0.0 for n in range(500)})])

    assert changed == {"loss"}
    assert store.names(RUN) == ["loss"]


def test_the_first_episode_decides_what_steps_count(store):
    for run, step in (("a", 100), ("b", None)):
        store.open(run, "episode/return")
        store.load(run, curve("episode/return", [], []))
        store.add(run, [episode(1, 0, 7.0, step)])

    assert store.step_axis("a", "episode/return") == "env steps"
    assert store.step_axis("b", "episode/return") == "episodes"
    assert store.series("a", "episode/return", "env steps").x.tolist() == [100]


def test_evaluation_episodes_have_curves_of_their_own(store):
    for name in ("episode/return", "eval/return"):
        store.open(RUN, name)
        store.load(RUN, curve(name, [], []))

    store.add(RUN, [episode(1, 0, 7.0, 5), episode(2, 0, 9.0, 5, agent="eval")])

    assert store.series(RUN, "eval/return", "env steps").y.tolist() == [9]
    assert store.series(RUN, "episode/return", "env steps").y.tolist() == [7]


def test_rewards_of_steps_are_a_curve_too(store):
    store.open(RUN, "step/reward")
    store.load(RUN, curve("step/reward", [], []))

    store.add(
        RUN, [Step(1, 10**9, 4, 0.5, 0, "", 0, False, False, b""), Step(2, 10**9, 5, None, 0, "", 0, False, False, b"")]
    )

    assert store.series(RUN, "step/reward", "env steps").y.tolist() == [0.5]


def test_counting_values_of_rollups_counts_episodes(store):
    store.open(RUN, "episode/return")
    store.load(RUN, curve("episode/return", [100, 200], [1, 2], 9, "env steps", counts=[64, 64]))
    store.add(RUN, [episode(10, 500, 3.0, 300)])

    assert store.series(RUN, "episode/return", "episodes").x.tolist() == [64, 128, 129]


def test_time_counts_from_the_start_of_the_run(store):
    store.open(RUN, "loss")
    store.load(RUN, curve("loss", [0, 10], [5, 4], 2, seconds=[1.0, 2.0]))
    store.add(RUN, [Metric(3, 105 * 10**9, 20, {"loss": 3.0}, b"")])

    assert store.axes(RUN, "loss") == ("env steps", "time")
    assert store.series(RUN, "loss", "time").x.tolist() == [1, 2, 5]


def test_a_chosen_range_is_shown_in_detail(store):
    store.open(RUN, "loss")
    store.load(RUN, curve("loss", [0, 100, 200, 300], [0, 1, 2, 3], 4))

    store.show_detail(RUN, "loss", curve("loss", [90, 95, 110], [7, 8, 9]))
    detailed = store.series(RUN, "loss", "env steps").x.tolist()
    store.show_detail(RUN, "loss", None)

    assert detailed == [0, 90, 95, 110, 200, 300]
    assert len(store.series(RUN, "loss", "env steps").x) == 4


def test_a_range_of_time_is_a_range_of_steps(store):
    store.open(RUN, "loss")
    store.load(RUN, curve("loss", [0, 100, 200], [0, 1, 2], 3, seconds=[0.0, 10.0, 20.0]))

    assert store.detail_range(RUN, "loss", "time", 5.0, 15.0) == (50, 150)
    assert store.detail_range(RUN, "loss", "env steps", 5.5, 15.5) == (5, 16)


def test_memory_stays_bounded_and_extremes_survive(store):
    store.open(RUN, "loss")
    store.load(RUN, curve("loss", [], []))

    for start in range(0, 50_000, 1000):
        store.add(RUN, [metric(n + 1, n, loss=float(n == 777)) for n in range(start, start + 1000)])

    series = store.series(RUN, "loss", "env steps")
    assert len(series.x) <= curve_track.MOST_HISTORY + curve_track.MOST_LIVE
    assert series.high.max() == 1.0
    assert series.x[-1] == 49_999


def test_halving_keeps_mean_count_and_extremes():
    nan = np.nan
    points = Points.of(curve("m", [1, 2, 3, 4, 5], [1, 3, nan, 4, 9], counts=[1, 3, 1, 1, 1]))

    half = points.halved()

    assert half.mean.tolist() == [2.5, 4, 9]
    assert half.count.tolist() == [4, 2, 1]
    assert half.number.tolist() == [4, 6, 7]
    assert half.step.tolist() == [2, 4, 5]


def test_steps_that_go_back_are_drawn_in_order(store):
    store.open(RUN, "loss")
    store.load(RUN, curve("loss", [0, 20, 10], [1, 2, 3], 3))

    assert store.series(RUN, "loss", "env steps").x.tolist() == [0, 10, 20]
