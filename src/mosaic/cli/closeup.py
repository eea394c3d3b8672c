"""How `mosaic watch` draws one run: its state explained, all its metrics, the end of its log."""

import math
from typing import TYPE_CHECKING

from rich.console import ConsoleDimensions
from rich.text import Text

from mosaic.cli.follow import progress_words
from mosaic.cli.paint import STATE_STYLE, number, printable, sparkline
from mosaic.cli.returns import score_words, trace
from mosaic.cli.scenery import cut, pad
from mosaic.cli.show import clock
from mosaic.cli.states import explain

if TYPE_CHECKING:
    from mosaic.cli.scene import CloseUp, Scene
    from mosaic.client import Run

NUMBER_WIDTH = 9
LEAST_METRICS, LEAST_LOG = 3, 3


def draw_run(scene: "Scene", size: ConsoleDimensions) -> list[Text]:
    close_up = scene.close_up
    assert close_up is not None
    run = close_up.run
    if run is None:
        return [Text(f"Asking for run {close_up.run_id} …")]
    head = _head(run, size.width)
    room = size.height - 1 - len(head) - 2  # the footer and two rules
    metrics = _metrics_room(close_up, room)
    close_up.scroll.page = max(1, metrics - 1)  # one line of headings
    close_up.scroll.move(0, len(close_up.matching()))
    parts = [*head, _rule(_metrics_title(close_up), size.width), *_metrics(close_up, run, size.width)[:metrics]]
    return [*parts, _rule("log", size.width), *_log(close_up, max(0, room - min(metrics, len(parts) - len(head) - 1)))]


def _metrics_room(close_up: "CloseUp", room: int) -> int:
    """Two thirds for the metrics, unless one of both needs less."""
    wanted = len(close_up.matching()) + 1
    for_log = min(max(LEAST_LOG, room // 3), max(1, len(close_up.log)))
    return max(LEAST_METRICS, min(wanted, room - for_log))


def _head(run: "Run", width: int) -> list[Text]:
    style = "yellow" if run.life or run.waiting_for or run.telemetry else STATE_STYLE[run.state]
    name = cut(printable(run.name or run.worker_name), width)
    title = Text(name, "bold").append(f"  {run.run_id}", "dim")
    lines = [title, Text(explain(run), style), Text(progress_words(run, 30 if width >= 80 else 10))]
    if words := score_words(run):
        lines.append(Text(words).append(f"  {trace(run, max(0, min(60, width - len(words) - 2)))}", "green"))
    holders = [f"worker {run.worker_name}", ", ".join(run.granted) or "no GPU", *_held(run)]
    lines.append(Text(" · ".join(map(printable, holders)), "dim"))
    moves = [f"{clock(move.at)[11:19]} {move.new}" for move in run.history]
    return [*lines, *([Text(" → ".join(moves), "dim")] if moves else [])]


def _held(run: "Run") -> list[str]:
    held = [f"held by {run.held_by}"] if run.held_by else []
    return [*held, *([f"{run.relation} of {run.parent_run_id}"] if run.parent_run_id else [])]


def _rule(title: str, width: int) -> Text:
    return Text(f"── {title} ".ljust(width, "─"), "dim")


def _metrics_title(close_up: "CloseUp") -> str:
    count, scroll = len(close_up.matching()), close_up.scroll
    told = f"metrics matching '{printable(close_up.filter)}'" if close_up.filter else "metrics"
    if count <= scroll.page:
        return told
    return f"{told} {scroll.top + 1}–{min(scroll.top + scroll.page, count)} of {count}"


def _metrics(close_up: "CloseUp", run: "Run", width: int) -> list[Text]:
    if not close_up.matching():
        return [Text("no metric matches" if close_up.names else "nothing measured yet", "dim")]
    headings = ("last", "min", "max") if width >= 64 else ("last",)
    numbers = (NUMBER_WIDTH + 1) * len(headings)
    names = max(12, min(44, max(map(len, close_up.names)), width - numbers - (20 if width >= 64 else 0)))
    curve_width = max(0, width - names - numbers - 2)
    lines = [Text(pad("", names) + "".join(" " + pad(word, NUMBER_WIDTH, right=True) for word in headings), "dim")]
    for name in close_up.visible():
        told = "".join(
            " " + pad(value, NUMBER_WIDTH, right=True) for value in _numbers(close_up, run, name, len(headings))
        )
        line = Text(pad(printable(name), names) + told)
        curve = close_up.curves.get(name)
        lines.append(line.append("  " + sparkline(curve.mean, curve_width), "green") if curve and curve_width else line)
    return lines


def _numbers(close_up: "CloseUp", run: "Run", name: str, count: int) -> list[str]:
    """The last value, the least and the greatest. The curve may be a little older than the last value."""
    curve = close_up.curves.get(name)
    drawn = (curve.mean[-1], min(curve.min), max(curve.max)) if curve and curve.mean else (None, None, None)
    last = run.summary.last_values.get(name, drawn[0])
    values = [last, *drawn[1:]]
    if last is not None and drawn[0] is not None and math.isfinite(last):
        values = [last, min(last, *drawn[1:2]), max(last, *drawn[2:])]
    return [number(value) for value in values][:count]


def _log(close_up: "CloseUp", room: int) -> list[Text]:
    lines = list(close_up.log)[-room:] if room else []
    return [Text(printable(line)) for line in lines] or [Text("nothing printed", "dim")]
