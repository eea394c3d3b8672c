"""Rows are filtered, sorted and grouped on request, and keep their places in between."""

import time
from dataclasses import replace

import pytest

from mosaic.model.states import RunState
from mosaic.present.run_cells import column
from mosaic.present.run_filter import parse_filter
from mosaic.present.run_groups import GROUPINGS, divide, first_ancestor
from mosaic.present.run_order import ORDERS, in_order, sorted_by
from mosaic.present.run_rows import Heading, RunRows


@pytest.fixture
def make_rows(make_run):
    def make(count=0, runs=(), **fields):
        made = list(runs) or [make_run(name=f"run {number}") for number in range(count)]
        rows = RunRows({run.run_id: run for run in made}, **fields)
        rows.arrange()
        return rows

    return make


def names(rows):
    return [str(row) if isinstance(row, Heading) else rows.runs[row].name for row in rows.rows]


def report(rows, *runs, deleted=(), is_whole=False):
    """What the hub and the model do with a report."""
    for run in runs:
        rows.runs[run.run_id] = run
    for run_id in deleted:
        rows.runs.pop(run_id, None)
    change = rows.plan(runs, deleted, is_whole)
    for place in change.removed:
        rows.remove(place)
    for run_id in change.inserted:
        place = rows.place_for(run_id)
        if place is None:
            rows.arrange()
        else:
            rows.insert(place, [run_id])
    return change


def test_the_newest_run_is_at_the_top(make_rows):
    assert names(make_rows(3)) == ["run 2", "run 1", "run 0"]


@pytest.mark.parametrize("is_descending", [False, True])
def test_runs_without_a_value_are_last_in_both_directions(make_run, is_descending):
    runs = [make_run(name=str(value), summary={"mean_return": value}) for value in (5, -3)] + [make_run(name="none")]

    found = sorted_by(runs, lambda run: run.summary.mean_return, is_descending)

    assert [run.name for run in found] == (["5", "-3", "none"] if is_descending else ["-3", "5", "none"])


@pytest.mark.parametrize("order", ORDERS)
def test_equal_runs_are_listed_newest_first_in_every_order(make_run, order):
    runs = [make_run(name="same") for _ in range(3)]

    assert in_order(runs, order) == runs[::-1]


def test_a_new_run_appears_at_the_top_and_a_deleted_one_goes(make_rows, make_run):
    rows = make_rows(3, column=column("name"))
    gone = rows.rows[1]

    change = report(rows, make_run(name="a new one"), deleted=[gone])

    assert names(rows) == ["a new one", "run 0", "run 2"]
    assert (change.removed, change.changed) == ((1,), ())
    assert all(rows.rows[place] == run_id for run_id, place in rows.place.items())


def test_a_run_that_changes_keeps_its_row_until_the_user_sorts(make_rows):
    rows = make_rows(3, column=column("return"), is_descending=True)
    last = rows.runs[rows.rows[2]]

    better = replace(last, summary=replace(last.summary, mean_return=900.0))
    change = report(rows, better)

    assert (change.changed, names(rows)) == ((2,), ["run 2", "run 1", "run 0"])
    rows.arrange()
    assert names(rows) == ["run 0", "run 2", "run 1"]


def test_a_run_that_no_longer_matches_stays_until_the_user_refreshes(make_rows):
    rows = make_rows(3, filter=parse_filter("state:live"))
    run = rows.runs[rows.rows[1]]

    report(rows, replace(run, state=RunState.TERMINATED))

    assert (len(rows.rows), rows.stale()) == (3, 1)
    rows.arrange()
    assert (len(rows.rows), rows.stale()) == (2, 0)


def test_a_run_that_begins_to_match_appears_and_one_that_does_not_is_left_out(make_rows, make_run):
    rows = make_rows(runs=[make_run("INIT", name="a"), make_run(name="b")], filter=parse_filter("state:running"))

    report(rows, replace(next(iter(rows.runs.values())), state=RunState.READY), make_run("INIT", name="c"))

    assert names(rows) == ["a", "b"]


def test_after_a_reconnection_the_whole_list_is_only_a_change(make_rows, make_run):
    rows = make_rows(3, column=column("name"))
    kept = [run for run in rows.runs.values() if run.name != "run 1"]
    del rows.runs[rows.rows[1]]

    change = report(rows, *kept, make_run(name="new"), is_whole=True)

    assert names(rows) == ["new", "run 0", "run 2"]
    assert change.removed == (1,)


@pytest.mark.parametrize(
    ("grouping", "expected"),
    [
        ("worker", ["cleanrl  (2)", "c", "b", "toy  (1)", "a"]),
        ("algo", ["dqn  (1)", "b", "ppo  (1)", "c", "no algorithm  (1)", "a"]),
        ("env", ["Pong  (2)", "c", "b", "no environment  (1)", "a"]),
        ("state", ["▶ running  (2)", "c", "a", "✕ failed  (1)", "b"]),
        ("tag", ["x, y  (1)", "a", "no tag  (2)", "c", "b"]),
    ],
)
def test_runs_are_grouped(make_rows, make_run, grouping, expected):
    runs = [
        make_run(name="a", tags=["y", "x"]),
        make_run("FAULTED", name="b", worker_name="cleanrl", algo="dqn", env_id="Pong"),
        make_run(name="c", worker_name="cleanrl", algo="ppo", env_id="Pong"),
    ]

    assert names(make_rows(runs=runs, grouping=grouping)) == expected


def test_days_are_newest_first_and_today_is_named(make_rows, make_run):
    runs = [make_run(name="old", created_at=time.time() - 5 * 86400), make_run(name="new")]

    found = names(make_rows(runs=runs, grouping="day"))

    assert found[0].startswith("Today, ")
    assert (found[1], found[3]) == ("new", "old")


def test_resumed_and_evaluated_runs_are_grouped_with_their_first_ancestor(make_run):
    first = make_run(name="first")
    second = make_run(parent_run_id=first.run_id, relation="resume")
    third = make_run(parent_run_id=second.run_id, relation="eval")
    orphan = make_run(parent_run_id="01GONE")
    loop = make_run(run_id="01LOOP", parent_run_id="01LOOP")
    known = {run.run_id: run for run in (first, second, third, orphan, loop)}

    groups = divide(known.values(), GROUPINGS["parent"], known)

    assert first_ancestor(third, known) == first.run_id
    assert [(group.label, len(group.runs)) for group in groups] == [
        ("cartpole", 1),
        ("first", 3),
        ("01GONE (deleted)", 1),
    ]


def test_in_a_group_a_new_run_appears_at_the_top_and_a_new_group_appears(make_rows, make_run):
    rows = make_rows(runs=[make_run(name="a"), make_run(name="b", worker_name="zoo")], grouping="worker")

    report(rows, make_run(name="c", worker_name="zoo"), make_run(name="d", worker_name="cleanrl"))

    assert names(rows) == ["cleanrl  (1)", "d", "toy  (1)", "a", "zoo  (2)", "c", "b"]


def test_a_closed_group_hides_its_runs_but_counts_them(make_rows):
    rows = make_rows(3, grouping="worker")

    rows.toggle(rows.rows[0])

    assert (names(rows), rows.count) == (["toy  (3)"], 3)
    rows.toggle(rows.rows[0])
    assert len(rows.rows) == 4


def test_a_deleted_run_is_no_longer_counted_in_its_group(make_rows):
    rows = make_rows(3, grouping="worker")

    report(rows, deleted=[rows.rows[2]])

    assert (str(rows.rows[0]), rows.count) == ("toy  (2)", 2)
