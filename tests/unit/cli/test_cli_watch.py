"""The keys of `mosaic watch`, and that its screen fits any terminal, even with a thousand runs."""

import io
import time

import pytest
from rich.console import Console

from mosaic.cli import watch_list
from mosaic.cli.watch_list import cut, draw
from mosaic.cli.watch_state import WatchState
from mosaic.client.events import Curve
from mosaic.present.metric_order import in_order
from mosaic.present.run_order import ORDERS
from mosaic.wire import mosaic_pb2 as pb

EVIL = "\x1b[2J\x1b]0;owned\x07evil\r\x9b"


@pytest.fixture
def make_state(make_run):
    def make(count, page=10, **fields):
        runs = [make_run(run_id=f"01JCQ{number:021}", name=f"run {number}", **fields) for number in range(count)]
        state = WatchState(runs={run.run_id: run for run in runs}, total=count)
        state.scroll.page = page
        state.arrange()
        return state

    return make


def press(state, *keys):
    for key in keys:
        state.press(key)
    return state


def lines_of(state, width, height=24):
    console = Console(width=width, height=height, file=io.StringIO(), color_system=None)
    console.print(draw(state, console.size))
    return console.file.getvalue().splitlines()


def test_keys_move_the_selection_and_open_and_close_a_run(make_state):
    state = make_state(2)

    press(state, "down", "down", "enter")
    opened = state.open_run.run_id
    press(state, "escape")
    closed = state.open_run
    press(state, "q")

    assert opened == f"01JCQ{0:021}"
    assert closed is None
    assert state.is_left


@pytest.mark.parametrize(
    ("keys", "place", "top"),
    [
        (["pgdn"], 10, 1),
        (["pgdn", "pgdn", "pgup"], 10, 10),
        (["end"], 99, 90),
        (["end", "home"], 0, 0),
        (["wheel down", "wheel down", "wheel up"], 3, 0),
        (["down"] * 12, 12, 3),
        (["end", "up"], 98, 90),
        (["G", "g", "j", "j", "k"], 1, 0),
        (["click 5"], 2, 0),
        (["click 1"], 0, 0),
        (["click 60"], 0, 0),
    ],
)
def test_a_hundred_runs_can_be_scrolled(make_state, keys, place, top):
    state = press(make_state(100), *keys)

    assert (state.place, state.scroll.top) == (place, top)


def test_the_selection_stays_on_its_run_when_newer_runs_appear(make_state, make_run):
    state = press(make_state(20), "down", "down")
    marked = state.chosen.run_id

    newer = make_run(run_id="01JCR000000000000000000000")
    state.runs[newer.run_id] = newer
    state.arrange()

    assert (state.chosen.run_id, state.place) == (marked, 3)


def test_a_selection_of_the_first_row_stays_on_the_first_row(make_state, make_run):
    state = make_state(3)

    newer = make_run(run_id="01JCR000000000000000000000")
    state.runs[newer.run_id] = newer
    state.arrange()

    assert state.chosen.run_id == newer.run_id


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("atari", {"A"}),
        ("DREAM", {"B"}),
        ("faulted", {"B"}),
        ("ablation", {"C"}),
        ("01jcqc", {"C"}),
        ("toy exec", {"A", "C"}),
        ("nothing like it", set()),
        ("", {"A", "B", "C"}),
    ],
)
def test_the_filter_matches_name_worker_state_tags_and_id_while_it_is_typed(make_run, typed, found):
    runs = [
        make_run(run_id="01JCQA", name="atari"),
        make_run("FAULTED", run_id="01JCQB", worker_name="dreamer"),
        make_run(run_id="01JCQC", tags=["ablation"]),
    ]
    state = WatchState(runs={run.run_id: run for run in runs})
    state.arrange()

    press(state, "/", *typed)

    assert {run.run_id[-1] for run in state.shown} == found


def test_the_filter_understands_conditions_and_keeps_the_last_good_one(make_run):
    runs = [make_run(run_id="01A", summary={"mean_return": 5}), make_run("FAULTED", run_id="01B", env_id="Pong")]
    state = WatchState(runs={run.run_id: run for run in runs})
    state.arrange()

    press(state, "/", *"env:pong state:failed")
    found = [run.run_id for run in state.shown]
    wrong = press(state, "x")

    assert found == [run.run_id for run in wrong.shown] == ["01B"]
    assert 'state: "failedx" is not a state.' in lines_of(wrong, 100)[-1]
    assert 'state: "failedx" is not a state.' in lines_of(press(wrong, "enter"), 100)[-1]
    assert len(press(wrong, "escape").shown) == 2


def test_keys_with_a_meaning_can_be_typed_into_the_filter(make_state):
    state = press(make_state(3), "/", "q", "k", "c", "?", "back", "enter")

    assert (state.filter, state.is_left, state.question, state.is_typing) == ("qkc", False, None, False)
    assert "No run matches 'qkc'" in "\n".join(lines_of(state, 80))
    assert press(state, "escape").filter == ""


def test_runs_can_be_sorted_and_the_title_shows_the_order(make_run):
    runs = [
        make_run(run_id="01A", name="b", total_steps=10, summary={"last_step": 4, "mean_return": 5, "steps_per_s": 1}),
        make_run("TERMINATED", run_id="01B", name="c", summary={"last_step": 9, "mean_return": 9}),
        make_run("INIT", run_id="01C", name="a"),
    ]
    state = WatchState(runs={run.run_id: run for run in runs})
    state.arrange()

    seen = {}
    for _ in ORDERS:
        seen[state.order] = "".join(run.run_id[-1] for run in state.shown)
        assert f"sort: {state.order}" in lines_of(state, 80)[0]
        press(state, "s")

    assert seen == {
        "live first": "CAB",
        "newest": "CBA",
        "name": "CAB",
        "state": "CAB",
        "return": "BAC",
        "progress": "ACB",
        "steps/s": "ACB",
    }
    assert state.order == "live first"


def test_a_run_is_cancelled_only_after_a_yes(make_state):
    state = make_state(3)
    run = state.chosen

    asked = "\n".join(lines_of(press(state, "c"), 80))
    refused = press(state, "n").to_cancel
    again = press(state, "c", "y").to_cancel

    assert f"Cancel {run.name} ({run.run_id[:13]})? y/n" in asked
    assert (refused, again) == ("", run.run_id)


def test_a_run_that_is_over_cannot_be_cancelled(make_state):
    state = press(make_state(1, state="TERMINATED"), "c")

    assert state.question is None
    assert "is already over: TERMINATED" in lines_of(state, 80)[-1]


def test_help_names_every_key_and_state_and_any_key_closes_it(make_state):
    state = press(make_state(1), "?")

    output = "\n".join(lines_of(state, 80))
    press(state, "q")

    for word in ("PgUp", "filter", "cancel", "order", "READY", "started, no telemetry yet"):
        assert word in output
    assert (state.is_help, state.is_left) == (False, False)


def open_run(make_run, metrics=300, **fields):
    names = [f"m{number:03}" for number in range(metrics)]
    run = make_run(
        name="n" * 90,
        history=[pb.Move(new=pb.INIT, at=time.time())],
        total_steps=100,
        summary={"last_step": 50, "last_values": dict.fromkeys([*names, "losses/value"], 0.5)},
        **fields,
    )
    state = WatchState(runs={run.run_id: run})
    state.arrange()
    state.open(run.run_id)
    state.open_run.add_names([*run.summary.last_values, "episode/return"])
    state.open_run.curves = {"losses/value": Curve("losses/value", [1, 2], [2.0, 1.0], [0.5, 0.75], [2.5, 1.5], [1, 1])}
    state.open_run.log.extend(f"line {number}" for number in range(200))
    return state


@pytest.mark.parametrize("width", [40, 52, 60, 80, 100, 137, 200])
@pytest.mark.parametrize("height", [10, 24, 60])
def test_every_view_fits_its_terminal(make_run, make_state, width, height):
    name, reason = "名前 with a very long tail " * 5, "reason " * 40
    runs = [
        make_run("FAULTED" if number % 2 else "EXECUTING", run_id=f"01JCQ{number:021}", name=name, reason=reason)
        for number in range(70)
    ]
    state = WatchState(runs={run.run_id: run for run in runs}, total=70, filter="with")
    state.arrange()

    views = [state, open_run(make_run), press(make_state(1), "?"), press(make_state(1), "c"), press(make_state(9), "/")]

    for view in views:
        lines = lines_of(view, width, height)
        assert len(lines) == height
        assert all(watch_list.cell_len(line) <= width for line in lines)


def test_a_long_name_is_cut_with_an_ellipsis_and_the_other_columns_stay_in_place(make_run):
    runs = [make_run(run_id="01A", name="n" * 90), make_run(run_id="01B", name="short")]
    state = WatchState(runs={run.run_id: run for run in runs})
    state.arrange()

    for width in (40, 60, 80, 200):
        _, headings, short, long = lines_of(state, width)[:4]
        assert "n…" in long
        assert headings.index("state") == short.index("EXECUTING") == long.index("EXECUTING")


@pytest.mark.parametrize(
    ("text", "width", "expected"), [("名前名前", 5, "名前…"), ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("a b", 2, "a…")]
)
def test_text_is_cut_by_the_columns_it_takes(text, width, expected):
    assert cut(text, width) == expected


def test_only_visible_rows_are_formatted(make_state, monkeypatch):
    formatted = []
    row = watch_list.Layout.row
    monkeypatch.setattr(
        watch_list.Layout, "row", lambda self, run, is_marked: formatted.append(run) or row(self, run, is_marked)
    )

    lines_of(press(make_state(1000), "end", "pgup"), 80)

    assert len(formatted) == 21


def test_all_metrics_of_a_run_can_be_reached_score_and_losses_first(make_run):
    state = open_run(make_run)
    seen = []

    first = lines_of(state, 100)
    for _ in range(300):
        lines_of(state, 100)
        seen += state.open_run.visible()
        press(state, "pgdn")

    assert "metrics 1–" in "\n".join(first)
    assert seen[:2] == ["episode/return", "losses/value"]
    assert set(seen) == set(state.open_run.names)
    assert len(state.open_run.names) == 302


def test_metrics_can_be_filtered_and_escape_clears_the_filter_before_it_closes_the_run(make_run):
    state = press(open_run(make_run), "/", "m", "1", "7", "enter")

    assert state.open_run.matching() == [f"m17{number}" for number in range(10)]
    assert press(state, "escape").open_run.filter == ""
    assert press(state, "escape").open_run is None


def test_the_details_show_state_metrics_log_and_history(make_run):
    output = "\n".join(lines_of(open_run(make_run, metrics=3, life="quiet 6 min"), 100))

    for word in ("losses/value", "line 199", "INIT", "51/100", "EXECUTING: running", "quiet 6 min"):
        assert word in output


def test_the_smallest_and_largest_value_include_the_last_one(make_run):
    state = open_run(make_run, metrics=0)
    state.open_run.run.summary.last_values["losses/value"] = 9.0

    row = next(line for line in lines_of(state, 100) if line.startswith("losses/value"))

    assert row.split()[1:4] == ["9", "0.5", "9"]


def test_scores_come_first_then_losses_then_the_rest():
    names = ["charts/SPS", "losses/policy_loss", "charts/episodic_return", "a/b/c", "episode/return", "eval/return"]

    assert in_order(names) == [
        "eval/return",
        "charts/episodic_return",
        "episode/return",
        "losses/policy_loss",
        "charts/SPS",
        "a/b/c",
    ]


def test_a_worker_cannot_move_the_cursor(make_run):
    run = make_run(
        "INIT",
        name=EVIL,
        worker_name=EVIL,
        waiting_for=EVIL,
        tags=[EVIL],
        held_by=EVIL,
        parent_run_id=EVIL,
        summary={"last_step": 1, "last_values": {EVIL: 1.0}},
    )
    state = WatchState(runs={run.run_id: run}, problem=EVIL, filter="\x1b")
    state.arrange()
    listed = lines_of(state, 200) + lines_of(press(state, "escape", "c"), 200)
    press(state, "n").open(run.run_id)
    state.open_run.add_names(run.summary.last_values)
    state.open_run.log.append(EVIL)

    output = "\n".join(listed + lines_of(state, 200))

    assert "evil" in output
    assert not any(mark in output for mark in ("\x1b", "\r", "\x07", "\x9b", "owned"))
