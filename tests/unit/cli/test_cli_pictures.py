"""What people see: numbers, sparklines, tables, a run told in words."""

import csv
import io
import json
import math
import time

import pytest

from mosaic.cli.export import write_csv, write_jsonl
from mosaic.cli.follow import ending, exit_code, line, picture
from mosaic.cli.keyboard import names_of
from mosaic.cli.logs import last_lines, render, tail_pieces
from mosaic.cli.paint import bar, number, paint, printable, size, sparkline
from mosaic.cli.runs import note, runs_table
from mosaic.cli.show import describe
from mosaic.cli.table import render_table
from mosaic.cli.watch import Scene
from mosaic.client.events import Curve, LogPiece, event_from_wire
from mosaic.wire import mosaic_pb2 as pb


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (12, "12"),
        (0.03125, "0.03125"),
        (1234.5, "1234"),
        (123456, "123k"),
        (1.25e6, "1.25M"),
        (math.nan, "nan"),
    ],
)
def test_a_number_takes_few_letters(value, text):
    assert number(value) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (4_100_000, "4.1 MB"), (2e12, "2.0 TB")])
def test_bytes_are_told_in_the_unit_that_fits(count, text):
    assert size(count) == text


def test_a_sparkline_rises_with_its_values_and_leaves_a_gap_for_nan():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, math.nan, 1]) == "▄ ▄"
    assert sparkline([]) == sparkline([math.inf]) == ""
    assert len(sparkline(range(100), width=20)) == 20


def test_a_bar_is_as_long_as_its_width():
    assert bar(0.5, 4) == "━━╌╌"
    assert bar(7, 4) == "━━━━"


def test_nothing_is_coloured_where_nobody_sees_it():
    assert paint("x", "red", io.StringIO()) == "x"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert paint("x", "red", Terminal()) == "\x1b[31mx\x1b[0m"

    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("x", "red", Terminal()) == "x"


def test_control_characters_of_a_worker_do_not_reach_the_terminal():
    assert printable("\x1b[2Jboo\x1b[31m!\x1b[0m\r") == "boo! "


def test_a_table_aligns_columns_and_pushes_numbers_right():
    table = render_table(("A", "N"), [("x", "1"), ("long", "100")], right=frozenset({1}))

    assert table.splitlines() == ["A       N", "x       1", "long  100"]


def test_a_listing_names_the_whole_id_when_it_is_piped(make_run):
    run = make_run(total_steps=200, summary={"last_step": 99, "steps_per_s": 50, "mean_return": 12.5, "mean_over": 100})

    table = runs_table((run,))

    assert run.run_id in table
    for word in ("cartpole", "EXECUTING", "50%", "12.5 (100)"):
        assert word in table


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"state": "INIT", "waiting_for": "2 GPUs"}, "waiting for 2 GPUs"),
        ({"life": "quiet 6 min"}, "quiet 6 min"),
        ({"state": "FAULTED", "reason": "exit code 3\nTraceback"}, "exit code 3"),
        ({"cancel_wished": True}, "ending"),
        ({"state": "TERMINATED", "reason": "exit code 0"}, ""),
    ],
)
def test_a_listing_says_the_one_thing_worth_saying(make_run, fields, told):
    assert note(make_run(**fields)) == told


def test_the_last_words_point_to_the_log_of_a_failed_run(make_run):
    failed = make_run(state="FAULTED", reason="exit code 3")
    fine = make_run(state="TERMINATED", reason="exit code 0")

    assert "exit code 3" in ending(failed)
    assert f"mosaic logs {failed.run_id}" in ending(failed)
    assert "mosaic logs" not in ending(fine)
    assert (exit_code(failed), exit_code(fine), exit_code(make_run(state="CANCELLED"))) == (1, 0, 1)


def test_a_followed_run_is_told_in_one_line_and_in_a_picture(make_run):
    run = make_run(
        total_steps=200, summary={"last_step": 99, "steps_per_s": 50, "last_return": 3, "recent_returns": [1, 2, 3]}
    )

    assert {"EXECUTING", "50%", "step 99", "50 steps/s", "2s left", "return 3"} <= set(line(run).split("  "))
    assert "▁" in picture(run).plain
    assert "100/200" in picture(run).plain


EVENTS = [
    pb.Event(seq=1, step=pb.Step(step_index=0, reward=float("nan"), extra=b'{"action": 1}')),
    pb.Event(seq=2, metric=pb.Metric(names=["a", "b"], values=[1, 2], step=9)),
    pb.Event(seq=3, lifecycle=pb.Lifecycle(event="run_started", payload=b"{}")),
]


def test_exported_json_lines_have_type_seq_and_nan():
    file = io.StringIO()

    write_jsonl(map(event_from_wire, EVENTS), file)

    lines = [json.loads(text) for text in file.getvalue().splitlines()]
    assert [(told["type"], told["seq"]) for told in lines] == [("step", 1), ("metric", 2), ("lifecycle", 3)]
    assert math.isnan(lines[0]["reward"])
    assert lines[0]["action"] == 1


def test_exported_csv_has_a_row_per_value_of_a_metric():
    file = io.StringIO()

    write_csv(map(event_from_wire, EVENTS), file)

    rows = file.getvalue().splitlines()
    assert rows[0].startswith("seq,ts_ns,type,step_index,reward")
    assert [row.split(",")[2] for row in rows[1:]] == ["step", "metric", "metric", "lifecycle"]


def test_exported_episodes_say_the_env_step_at_which_they_ended():
    told = pb.Event(seq=1, episode=pb.Episode(total_reward=2, steps=9, global_step=4096, terminated=True))
    untold = pb.Event(seq=2, episode=pb.Episode(total_reward=2, steps=9))
    lines, table = io.StringIO(), io.StringIO()

    write_jsonl(map(event_from_wire, [told, untold]), lines)
    write_csv(map(event_from_wire, [told, untold]), table, "episode")

    first, second = [json.loads(text) for text in lines.getvalue().splitlines()]
    assert (first["global_step"], "global_step" in second) == (4096, False)
    rows = list(csv.DictReader(table.getvalue().splitlines()))
    assert [row["global_step"] for row in rows] == ["4096", ""]


def test_a_tail_of_lines_is_cut_at_a_line():
    pieces = [LogPiece("stdout", 0, 8, b"one\ntwo\n"), LogPiece("stdout", 8, 6, b"three\n")]

    kept = last_lines(pieces, 2)

    assert b"".join(piece.text for piece in kept) == b"two\nthree\n"


class Talking:
    """A live run: between two looks at its log there is another line."""

    def __init__(self, lines):
        self.asked = []
        self._lines = lines

    def stream_logs(self, run_id, tail_bytes=0):
        self.asked.append(tail_bytes)
        return [LogPiece("stderr", 0, 8, b"x\n" * (self._lines + len(self.asked)))]


def test_a_log_that_grows_meanwhile_is_not_looked_through_for_ever():
    client = Talking(lines=3)

    pieces = tail_pieces(client, "run", 20)

    assert len(client.asked) < 6
    assert len(pieces) == 1


def test_the_values_one_asks_for_first_are_shown_first_and_not_hundreds(make_run):
    plumbing = {f"actor/rpc/replay/count{n}": float(n) for n in range(60)}
    run = make_run(summary={"last_values": {**plumbing, "episode/score": 7.5, "train/loss/total": 0.25}})

    told = describe(run).split("last values")[1].splitlines()[1:]

    assert [line.split()[0] for line in told[:2]] == ["episode/score", "train/loss/total"]
    assert len(told) == 41
    assert told[-1] == f"… and 22 more: mosaic show {run.run_id} --json"


def test_a_run_that_tells_no_single_steps_still_ends_with_its_number_of_steps(make_run):
    run = make_run("TERMINATED", summary={"last_step": 3000, "episodes": 25, "metrics": 30, "events": 58})

    assert ending(run).splitlines()[1].startswith("3000 steps, 25 episodes, 30 metrics")
    assert "58 events (25 episodes, 30 metric lines, 3 lifecycle lines)" in describe(run)


def test_a_rejected_line_is_shown_with_its_reason():
    told = render(LogPiece("stdout", 7, 30, b'{"type": "step"', "rejected: no step_index"))

    assert told == b'[mosaic: stdout at byte 7: rejected: no step_index] {"type": "step"\n'


@pytest.mark.parametrize(
    ("typed", "keys"),
    [(b"\x1b[A", ["up"]), (b"\x1b", ["escape"]), (b"\x1b[B\x1b[B\r", ["down", "down", "enter"]), (b"q", ["q"])],
)
def test_keys_typed_at_once_are_told_apart(typed, keys):
    assert names_of(typed) == keys


def test_keys_move_the_mark_and_open_and_close_a_run(make_run):
    first, second = make_run(), make_run(run_id="01JCQ5W2ZK8M3N4P5Q6R7S8T9W")
    scene = Scene(runs=[first, second])

    for key in ("down", "down", "enter"):
        scene.press(key)
    opened = scene.open_run
    scene.press("escape")
    scene.press("q")

    assert opened == second.run_id
    assert scene.open_run == ""
    assert scene.is_left


@pytest.mark.parametrize("width", [60, 80, 140])
def test_the_watch_fits_its_terminal(make_run, width):
    from rich.console import Console

    from mosaic.cli.scenery import draw

    runs = [
        make_run(name="n" * 50, reason="r" * 200, total_steps=10, summary={"last_step": 4, "recent_returns": [1, 2]})
    ]
    scene = Scene(runs=runs * 50, total=999, selected=49)
    console = Console(width=width, height=20, file=io.StringIO())

    lines = console.render_lines(draw(scene, console.size), console.options)

    assert len(lines) <= 20


def test_the_details_of_a_run_fit_and_show_metrics_log_and_history(make_run):
    from rich.console import Console

    from mosaic.cli.scenery import draw

    run = make_run(history=[pb.Move(new=pb.INIT, at=time.time())], total_steps=100, summary={"last_step": 50})
    curve = Curve("loss", [1, 2], [2.0, 1.0], [1.5, 0.5], [2.5, 1.5], [1, 1])
    scene = Scene(open_run=run.run_id, run=run, curves=[curve], log=[f"line {n}" for n in range(200)])
    console = Console(width=100, height=24, file=io.StringIO())

    console.print(draw(scene, console.size))
    told = console.file.getvalue()

    assert len(told.splitlines()) <= 24
    for word in ("loss", "line 199", "INIT", "51/100"):
        assert word in told
