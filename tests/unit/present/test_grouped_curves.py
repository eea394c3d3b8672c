"""Groups of the Compare page, without a window."""

from dataclasses import replace

import pytest

from mosaic.client.events import Curve
from mosaic.client.run import Run
from mosaic.model.run import RunSummary
from mosaic.model.states import RunState
from mosaic.present.curves import CurveStore
from mosaic.present.grouped_curves import ALIKE, EACH, GroupedCurves, group_choices
from mosaic.wire import mosaic_pb2 as pb

NAME = "charts/return"
MEANS = [(20, 1.0), (21, 3.0), (22, float("inf"))]
PLAIN = Run.from_wire(pb.RunInfo(run_id="01", name="toy", worker_name="toy", state=pb.TERMINATED))


def run(number, **more):
    return replace(PLAIN, run_id=f"{number:02}", state=RunState.TERMINATED, **more)


@pytest.fixture
def runs():
    return [run(number, seed=number % 4) for number in range(8)]


@pytest.fixture
def settings(runs):
    return {each.run_id: {"algo.lr": 0.1 if int(each.run_id) < 4 else 0.2, "seed": each.seed} for each in runs}


@pytest.fixture
def store(runs):
    store = CurveStore()
    for each in runs:
        number = int(each.run_id)
        last = 60 if number == 2 else 100
        store.open(each.run_id, NAME)
        steps = list(range(last + 1))
        values = [step + 100.0 * (number >= 4) + each.seed for step in steps]
        store.load(each.run_id, Curve(NAME, steps, values, values, values, [1] * len(steps)))
    return store


def test_runs_are_grouped_by_what_differs_but_not_by_their_seeds(runs, settings):
    assert group_choices(runs, settings) == [(EACH, "each run"), (ALIKE, "equal settings"), ("algo.lr", "lr")]


@pytest.mark.parametrize("by", [ALIKE, "algo.lr", "lr"])
def test_a_group_has_one_curve_with_a_band(runs, settings, store, by):
    grouped = GroupedCurves(store)
    grouped.arrange(runs, settings, by)

    low, high = grouped.series(NAME, "env steps")

    assert (low.label, high.label) == ("lr=0.1", "lr=0.2")
    assert low.x[-1] == high.x[-1] == 60  # where the shortest run ends
    assert low.y[-1] == pytest.approx(61.5)
    assert low.low[-1] < low.y[-1] < low.high[-1]
    assert grouped.series(NAME, "env steps") is grouped.series(NAME, "env steps")  # computed once
    assert grouped.colours()["05"] == 1


def test_the_statistics_say_what_is_better_and_what_is_left_out(runs, settings, store):
    runs[7] = replace(runs[7], state=RunState.FAULTED, reason="exit code 1\nTraceback")
    grouped = GroupedCurves(store)
    grouped.arrange(runs, settings, "lr")

    found = grouped.comparison(NAME)

    assert [len(group.counted) for group in found.groups] == [4, 3]
    assert found.sentences()[0].startswith("lr=0.1 and lr=0.2: no clear difference") or "beats" in found.sentences()[0]
    assert found.warnings[0] == "lr=0.2: 1 run is left out of 4: seed 3 (07) FAULTED: exit code 1."
    assert grouped.comparison(NAME) is found


def test_a_failed_run_does_not_end_the_curves(runs, settings, store):
    runs[2] = replace(runs[2], state=RunState.FAULTED)
    grouped = GroupedCurves(store)
    grouped.arrange(runs, settings, "lr")

    assert [series.x[-1] for series in grouped.series(NAME, "env steps")] == [100, 100]


def test_without_a_finished_run_there_are_words_instead_of_numbers(runs, settings, store):
    live = [replace(each, state=RunState.EXECUTING) for each in runs]
    grouped = GroupedCurves(store)
    grouped.arrange(live, settings, "lr")

    assert grouped.comparison(NAME) is None
    assert grouped.problem.startswith("No run has a value to compare.")
    assert "--" not in grouped.problem
    assert len(grouped.series(NAME, "env steps")) == 2


def test_a_setting_that_is_gone_leaves_equal_settings(runs, settings, store):
    grouped = GroupedCurves(store)

    grouped.arrange(runs, settings, "gone")
    assert [group.label for group in grouped.groups] == ["lr=0.1", "lr=0.2"]

    grouped.arrange(runs, settings, EACH)
    assert not grouped.is_grouped


def test_a_run_whose_value_is_not_finite_is_left_out_and_one_with_some_gaps_is_named(runs, settings, store):
    steps, gaps = list(range(101)), [float("nan") if step < 3 else 1.0 * step for step in range(101)]
    never = [float("nan")] * 101
    store.load(runs[0].run_id, Curve(NAME, steps, never, never, never, [1] * 101))
    store.load(runs[1].run_id, Curve(NAME, steps, gaps, gaps, gaps, [1] * 101))
    grouped = GroupedCurves(store)
    grouped.arrange(runs, settings, "lr")

    found = grouped.comparison(NAME)

    assert len(found.groups[0].counted) == 3
    assert "lr=0.1: 1 run is left out of 4: seed 0 (00) its value is not a finite number." in found.warnings
    assert "lr=0.1: 1 run has values that are NaN or infinite, which do not count: seed 1 (01)." in found.warnings


def test_an_infinite_mean_of_the_episodes_is_not_averaged(store):
    name = "episode/return"
    runs = [run(n, seed=n, summary=RunSummary(episodes=3, mean_over=3, mean_return=m)) for n, m in MEANS]
    for each in runs:
        store.open(each.run_id, name)
        store.load(each.run_id, Curve(name, [1, 2, 3], [1.0] * 3, [1.0] * 3, [1.0] * 3, [1] * 3))
    grouped = GroupedCurves(store)
    grouped.arrange(runs, {each.run_id: {"seed": each.seed} for each in runs}, ALIKE)

    (group,) = grouped.comparison(name).groups

    assert [sample.value for sample in group.samples] == [1.0, 3.0, None]
    assert group.estimates["mean"].value == 2.0
