"""Draws one run for `mosaic watch`: its state, all its metrics and the end of its log."""

import math
from typing import TYPE_CHECKING

from rich.console import ConsoleDimensions
from rich.text import Text

from mosaic.cli.follow import describe_progress
from mosaic.cli.terminal_text import STATE_STYLE
from mosaic.cli.watch_list import cut, pad
from mosaic.present.run_facts import clock
from mosaic.present.scores import describe_score, trace
from mosaic.present.states import explain
from mosaic.present.text import number, printable, sparkline

if TYPE_CHECKING:
    from mosaic.cli.watch_state import OpenRun, WatchState
    from mosaic.client import Run

NUMBER_WIDTH = 9
LEAST_METRICS, LEAST_LOG = 3, 3


def draw_run(state: "WatchState", size: ConsoleDimensions) -> list[Text]:
    open_run = state.open_run
    assert open_run is not None
    run = open_run.run
    if run is None:
        return [Text(f"Loading run {open_run.run_id} …")]
    head = _head(run, size.width)
    room = size.height - 1 - len(head) - 2  # the footer and two rules
    metrics = _metrics_room(open_run, room)
    open_run.scroll.page = max(1, metrics - 1)  # one line of headings
    open_run.scroll.move(0, len(open_run.matching()))
    parts = [*head, _rule(_metrics_title(open_run), size.width), *_metrics(open_run, run, size.width)[:metrics]]
    return [*parts, _rule("log", size.width), *_log(open_run, max(0, room - min(metrics, len(parts) - len(head) - 1)))]


def _metrics_room(open_run: "OpenRun", room: int) -> int:
    """The number of lines for metrics: two thirds of the room, unless metrics or log need less."""
    wanted = len(open_run.matching()) + 1
    for_log = min(max(LEAST_LOG, room // 3), max(1, len(open_run.log)))
    return max(LEAST_METRICS, min(wanted, room - for_log))


def _head(run: "Run", width: int) -> list[Text]:
    style = "yellow" if run.life or run.waiting_for or run.telemetry else STATE_STYLE[run.state]
    name = cut(printable(run.name or run.worker_name), width)
    title = Text(name, "bold").append(f"  {run.run_id}", "dim")
    lines = [title, Text(explain(run), style), Text(describe_progress(run, 30 if width >= 80 else 10))]
    if score := describe_score(run):
        lines.append(Text(score).append(f"  {trace(run, max(0, min(60, width - len(score) - 2)))}", "green"))
    facts = [f"worker {run.worker_name}", ", ".join(run.granted) or "no GPU", *_origin(run)]
    lines.append(Text(" · ".join(map(printable, facts)), "dim"))
    moves = [f"{clock(move.at)[11:19]} {move.new}" for move in run.history]
    return [*lines, *([Text(" → ".join(moves), "dim")] if moves else [])]


def _origin(run: "Run") -> list[str]:
    held = [f"held by {run.held_by}"] if run.held_by else []
    return [*held, *([f"{run.relation} of {run.parent_run_id}"] if run.parent_run_id else [])]


def _rule(title: str, width: int) -> Text:
    return Text(f"── {title} ".ljust(width, "─"), "dim")


def _metrics_title(open_run: "OpenRun") -> str:
    count, scroll = len(open_run.matching()), open_run.scroll
    title = f"metrics matching '{printable(open_run.filter)}'" if open_run.filter else "metrics"
    if count <= scroll.page:
        return title
    return f"{title} {scroll.top + 1}–{min(scroll.top + scroll.page, count)} of {count}"


def _metrics(open_run: "OpenRun", run: "Run", width: int) -> list[Text]:
    if not open_run.matching():
        return [Text("no metric matches" if open_run.names else "no metrics yet", "dim")]
    headings = ("last", "min", "max") if width >= 64 else ("last",)
    numbers = (NUMBER_WIDTH + 1) * len(headings)
    names = max(12, min(44, max(map(len, open_run.names)), width - numbers - (20 if width >= 64 else 0)))
    curve_width = max(0, width - names - numbers - 2)
    lines = [
        Text(pad("", names) + "".join(" " + pad(heading, NUMBER_WIDTH, right=True) for heading in headings), "dim")
    ]
    for name in open_run.visible():
        numbers_text = "".join(
            " " + pad(value, NUMBER_WIDTH, right=True) for value in _numbers(open_run, run, name, len(headings))
        )
        line = Text(pad(printable(name), names) + numbers_text)
        curve = open_run.curves.get(name)
        lines.append(line.append("  " + sparkline(curve.mean, curve_width), "green") if curve and curve_width else line)
    return lines


def _numbers(open_run: "OpenRun", run: "Run", name: str, count: int) -> list[str]:
    """The last, the smallest and the largest value. The curve may be a little older than the last value."""
    curve = open_run.curves.get(name)
    drawn = (curve.mean[-1], min(curve.min), max(curve.max)) if curve and curve.mean else (None, None, None)
    last = run.summary.last_values.get(name, drawn[0])
    values = [last, *drawn[1:]]
    if last is not None and drawn[0] is not None and math.isfinite(last):
        values = [last, min(last, *drawn[1:2]), max(last, *drawn[2:])]
    return [number(value) for value in values][:count]


def _log(open_run: "OpenRun", room: int) -> list[Text]:
    lines = list(open_run.log)[-room:] if room else []
    return [Text(printable(line)) for line in lines] or [Text("no output yet", "dim")]
