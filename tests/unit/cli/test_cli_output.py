"""What users see: numbers, sparklines, tables, exports and logs."""

import csv
import io
import json
import math

import pytest

from mosaic.cli.export import write_csv, write_jsonl
from mosaic.cli.logs import last_lines, render, tail_pieces
from mosaic.cli.runs import runs_table
from mosaic.cli.show import describe
from mosaic.cli.table import render_table
from mosaic.cli.terminal_text import paint
from mosaic.client.events import LogPiece, event_from_wire
from mosaic.present.runs import note
from mosaic.present.text import bar, number, printable, size, sparkline
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
def test_a_number_takes_few_characters(value, text):
    assert number(value) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (999, "999 B"), (4_100_000, "4.1 MB"), (2e12, "2.0 TB")])
def test_bytes_are_shown_in_a_suitable_unit(count, text):
    assert size(count) == text


def test_a_sparkline_rises_with_its_values_and_leaves_a_gap_for_nan():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([1, math.nan, 1]) == "▄ ▄"
    assert sparkline([]) == sparkline([math.inf]) == ""


def test_a_sparkline_shows_all_values_however_many_there_are():
    assert sparkline(range(100), width=4) == "▁▃▆█"
    assert sparkline([0] * 50 + [8] * 50, width=2) == "▁█"
    assert sparkline([math.nan] * 9 + [1, 2, 3], width=4) == "   ▄"


def test_a_bar_is_as_long_as_its_width():
    assert bar(0.5, 4) == "━━╌╌"
    assert bar(7, 4) == "━━━━"


def test_nothing_is_coloured_outside_a_terminal():
    assert paint("x", "red", io.StringIO()) == "x"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_no_color_switches_colours_off(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert paint("x", "red", Terminal()) == "\x1b[31mx\x1b[0m"

    monkeypatch.setenv("NO_COLOR", "1")
    assert paint("x", "red", Terminal()) == "x"


def test_control_characters_of_a_worker_do_not_reach_the_terminal():
    assert printable("\x1b[2Jboo\x1b[31m!\x1b[0m\r") == "boo! "
    assert printable("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b(0c\x9b2J") == "abc 2J"
    assert printable("\u202eevil\x1b") == " evil "


def test_a_table_aligns_columns_and_pushes_numbers_right():
    table = render_table(("A", "N"), [("x", "1"), ("long", "100")], right=frozenset({1}))

    assert table.splitlines() == ["A       N", "x       1", "long  100"]


def test_a_listing_shows_the_whole_id_in_a_pipe(make_run):
    run = make_run(total_steps=200, summary={"last_step": 99, "steps_per_s": 50, "mean_return": 12.5, "mean_over": 100})

    table = runs_table((run,))

    assert run.run_id in table
    for word in ("cartpole", "EXECUTING", "50%", "12.5 (100)"):
        assert word in table


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"state": "INIT", "waiting_for": "2 GPUs"}, "waiting for 2 GPUs"),
        ({"life": "quiet 6 min"}, "quiet 6 min"),
        ({"state": "FAULTED", "reason": "exit code 3\nTraceback"}, "exit code 3"),
        ({"cancel_requested": True}, "being cancelled"),
        ({"state": "TERMINATED", "reason": "exit code 0"}, ""),
    ],
)
def test_a_listing_shows_the_most_important_note(make_run, fields, expected):
    assert note(make_run(**fields)) == expected


EVENTS = [
    pb.Event(seq=1, step=pb.Step(step_index=0, reward=float("nan"), extra=b'{"action": 1}')),
    pb.Event(seq=2, metric=pb.Metric(names=["a", "b"], values=[1, 2], step=9)),
    pb.Event(seq=3, lifecycle=pb.Lifecycle(event="run_started", payload=b"{}")),
]


def unlabelled(events):
    """The events of one run: they need no run id."""
    return (("", event_from_wire(event)) for event in events)


def test_exported_json_lines_have_type_seq_and_nan():
    file = io.StringIO()

    write_jsonl(unlabelled(EVENTS), file)

    lines = [json.loads(text) for text in file.getvalue().splitlines()]
    assert [(output["type"], output["seq"]) for output in lines] == [("step", 1), ("metric", 2), ("lifecycle", 3)]
    assert math.isnan(lines[0]["reward"])
    assert lines[0]["action"] == 1


def test_exported_csv_has_a_row_per_value_of_a_metric():
    file = io.StringIO()

    write_csv(unlabelled(EVENTS), file)

    rows = file.getvalue().splitlines()
    assert rows[0].startswith("seq,ts_ns,type,step_index,reward")
    assert [row.split(",")[2] for row in rows[1:]] == ["step", "metric", "metric", "lifecycle"]


def test_exported_episodes_have_the_env_step_at_which_they_ended():
    output = pb.Event(seq=1, episode=pb.Episode(total_reward=2, steps=9, global_step=4096, terminated=True))
    without_step = pb.Event(seq=2, episode=pb.Episode(total_reward=2, steps=9))
    lines, table = io.StringIO(), io.StringIO()

    write_jsonl(unlabelled([output, without_step]), lines)
    write_csv(unlabelled([output, without_step]), table, "episode")

    first, second = [json.loads(text) for text in lines.getvalue().splitlines()]
    assert (first["global_step"], "global_step" in second) == (4096, False)
    rows = list(csv.DictReader(table.getvalue().splitlines()))
    assert [row["global_step"] for row in rows] == ["4096", ""]


def test_a_tail_of_lines_is_cut_at_a_line():
    pieces = [LogPiece("stdout", 0, 8, b"one\ntwo\n"), LogPiece("stdout", 8, 6, b"three\n")]

    kept = last_lines(pieces, 2)

    assert b"".join(piece.text for piece in kept) == b"two\nthree\n"


class GrowingLog:
    """A live run that prints a line between any two requests for its log."""

    def __init__(self, lines):
        self.requests = []
        self._lines = lines

    def stream_logs(self, run_id, tail_bytes=0):
        self.requests.append(tail_bytes)
        return [LogPiece("stderr", 0, 8, b"x\n" * (self._lines + len(self.requests)))]


def test_the_search_for_a_tail_ends_though_the_log_grows():
    client = GrowingLog(lines=3)

    pieces = tail_pieces(client, "run", 20)

    assert len(client.requests) < 6
    assert len(pieces) == 1


def test_important_values_are_shown_first_and_not_all_of_hundreds(make_run):
    plumbing = {f"actor/rpc/replay/count{n}": float(n) for n in range(60)}
    run = make_run(summary={"last_values": {**plumbing, "episode/score": 7.5, "train/loss/total": 0.25}})

    output = describe(run).split("last values")[1].splitlines()[1:]

    assert [line.split()[0] for line in output[:2]] == ["episode/score", "train/loss/total"]
    assert len(output) == 41
    assert output[-1] == f"… and 22 more: mosaic show {run.run_id} --json"


def test_a_rejected_line_is_shown_with_its_reason():
    output = render(LogPiece("stdout", 7, 30, b'{"type": "step"', "rejected: no step_index"))

    assert output == b'[mosaic: stdout at byte 7: rejected: no step_index] {"type": "step"\n'
