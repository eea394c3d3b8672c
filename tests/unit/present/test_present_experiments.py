import json

import pytest

from mosaic.model.states import RunState
from mosaic.present.experiments import current, describe_tally, eta_s, faults, groups, mean_return, progress, table
from mosaic.present.folded import folded


@pytest.fixture
def member(make_run):
    made = iter(range(100_000))

    def make(state="EXECUTING", experiment="sweep", **axes):
        summary = {"last_step": 49, "steps_per_s": 10.0, "mean_return": 5.0, "env_steps": 50}
        fields = {"experiment": experiment, "axes_json": json.dumps(axes), "total_steps": 100}
        summary = summary if state not in ("INIT", "FAULTED") else None
        return make_run(state, summary, created_at=1000.0 + next(made), **fields)

    return make


def test_a_run_that_was_repeated_is_replaced_by_its_successor(member):
    first, other, again = member("FAULTED", lr=1, seed=0), member(lr=1, seed=1), member("INIT", lr=1.0, seed=0)
    driver = member()

    assert current([again, driver, other, first]) == [again, other]


def test_runs_that_differ_in_the_seed_only_are_a_group(member):
    runs = [member(lr=1, seed=0), member(lr=2, seed=0), member(lr=1, seed=1)]

    assert [(group.label, len(group.runs)) for group in groups(runs)] == [("lr=1", 2), ("lr=2", 1)]


def test_progress_counts_runs_that_are_over_as_done(member):
    runs = [member("TERMINATED", seed=0), member("FAULTED", seed=1), member(seed=2), member("INIT", seed=3)]

    assert progress(runs) == (1 + 1 + 0.5 + 0) / 4
    assert progress([]) == 0


def test_the_time_left_is_that_of_the_work_left_shared_by_the_runs_that_run(member):
    running, waiting = [member(seed=0), member(seed=1)], [member("INIT", seed=n) for n in range(2, 6)]

    assert eta_s(running) == 5.0
    assert eta_s([*running, *waiting]) == (2 * 5 + 4 * 10) / 2
    assert eta_s(waiting) is None
    assert eta_s([member("TERMINATED", seed=0)]) == 0.0


def test_a_run_that_is_over_took_no_longer_than_it_existed(member, make_run):
    slow_at_its_end = make_run(
        "TERMINATED", {"steps_per_s": 0.1}, created_at=1000.0, updated_at=1008.0, experiment="sweep", total_steps=100
    )

    assert eta_s([slow_at_its_end, member("INIT", seed=1)]) == 8.0


def test_a_failed_run_is_counted_and_named_and_not_in_the_mean(member):
    runs = [member("TERMINATED", lr=1, seed=0), member("FAULTED", lr=1, seed=1)]

    headings, (row,), _ = table(runs)

    assert describe_tally({"TERMINATED": 1, "FAULTED": 1}) == "2 runs: 1 done, 1 FAULTED"
    assert mean_return(runs) == (5.0, 1)
    assert dict(zip(headings, row, strict=True)) == {
        "lr": "1",
        "RUNS": "2",
        "DONE": "1",
        "FAULTED": "1",
        "PROGRESS": "100%",
        "MEAN RETURN (RUNS)": "5 (1 of 2)",
    }
    assert [point for point, _, _ in faults(runs)] == ["lr=1 seed=1"]


def test_an_experiment_is_one_line_and_other_runs_are_as_before(member, make_run):
    alone, single = make_run(), member(experiment="single", seed=0)
    first, second = member(seed=0), member("TERMINATED", seed=1)

    lines = folded([alone, first, single, second])

    assert [line.run_id for line in lines] == [alone.run_id, "experiment:sweep", single.run_id]
    assert lines[1].name == "▸ sweep  2 runs: 1 done, 1 running"
    assert lines[1].state is RunState.EXECUTING
    assert lines[1].progress == 0.75
    assert lines[1].eta_s == 5.0
    assert lines[1].summary.mean_return == 5.0
    assert folded([first, second], {"sweep"})[1:] == [first, second]


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        (("TERMINATED", "READY"), "EXECUTING"),
        (("TERMINATED", "INIT", "FAULTED"), "INIT"),
        (("TERMINATED", "FAULTED", "CANCELLED"), "FAULTED"),
        (("TERMINATED", "CANCELLED"), "CANCELLED"),
        (("TERMINATED", "TERMINATED"), "TERMINATED"),
    ],
)
def test_the_line_shows_the_state_that_needs_attention(member, states, shown):
    assert folded([member(state, seed=n) for n, state in enumerate(states)])[0].state is RunState(shown)
