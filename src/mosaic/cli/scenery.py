"""How `mosaic watch` draws its scene. Only this file and follow.py know rich."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleDimensions, Group, JustifyMethod, RenderableType
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from mosaic.cli.durations import format_duration
from mosaic.cli.follow import progress_words
from mosaic.cli.paint import STATE_STYLE, bar, number, printable, sparkline
from mosaic.cli.runs import SHORT_ID, note
from mosaic.cli.show import clock
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.cli.watch import Scene
    from mosaic.client import Run
    from mosaic.client.events import Curve

LIST_KEYS = "↑↓ choose · enter open · q leave"
RUN_KEYS = "esc back · q leave"
FRAME_ROWS = 4  # title, headings, keys, and the terminal's last line


def draw(scene: "Scene", size: ConsoleDimensions) -> RenderableType:
    if scene.open_run:
        return _draw_run(scene, size)
    return _draw_list(scene, size)


def _draw_list(scene: "Scene", size: ConsoleDimensions) -> RenderableType:
    room = max(1, size.height - FRAME_ROWS)
    # Scroll just far enough that the mark is seen.
    first = max(0, scene.selected - room + 1)
    shown = scene.runs[first : first + room]
    body: RenderableType = _runs_table(scene, shown, first, size.width) if shown else _nothing()
    return Group(_title(scene), body, _footer(scene, LIST_KEYS))


def _title(scene: "Scene") -> Text:
    live = sum(not run.state.is_over for run in scene.runs)
    title = Text("MOSAIC", "bold")
    return title.append(f"  {live} live, {scene.total} in all   {time.strftime('%H:%M:%S')}", "dim")


def _nothing() -> Text:
    return Text("\nNo runs yet. In another terminal: mosaic run toy steps=500 rate=50\n", "dim")


def _footer(scene: "Scene", keys: str) -> Text:
    if scene.trouble:
        return Text(printable(scene.trouble) + " Waiting …", "yellow")
    return Text(keys, "dim")


def _runs_table(scene: "Scene", shown: "list[Run]", first: int, width: int) -> Table:
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = [column for column in COLUMNS if column.needs <= width < column.up_to]
    for column in columns:
        justify: JustifyMethod = "right" if column.is_number else "left"
        table.add_column(column.heading, no_wrap=True, overflow="ellipsis", justify=justify, ratio=column.ratio)
    for place, run in enumerate(shown, first):
        cells = [column.cell(run) for column in columns]
        table.add_row(*cells, style="reverse" if place == scene.selected else "")
    return table


@dataclass(frozen=True)
class Column:
    heading: str
    cell: "Callable[[Run], Text]"
    needs: int = 0  # shown on terminals at least so wide …
    up_to: int = 1 << 30  # … and narrower than this
    is_number: bool = False
    ratio: int | None = None  # share of the room that is left; None: as wide as its cells


def _progress(run: "Run") -> Text:
    if run.progress is None:
        return Text(f"step {run.summary.last_step}" if run.summary.last_step >= 0 else "", "dim")
    return Text(bar(run.progress), STATE_STYLE[run.state]).append(f" {run.progress:>4.0%}")


def _draw_run(scene: "Scene", size: ConsoleDimensions) -> RenderableType:
    run = scene.run
    if run is None:
        return Group(Text(f"Asking for run {scene.open_run} …"), _footer(scene, RUN_KEYS))
    parts: list[RenderableType] = [_run_head(run), Rule(style="dim")]
    parts += [_history(run), Rule("metrics", style="dim"), _curves(scene.curves, max(10, size.width - 50))]
    used = _height(parts, size)
    room = max(0, size.height - used - 3)
    parts += [Rule("log", style="dim"), *_log(scene.log, room, size.width), _footer(scene, RUN_KEYS)]
    return Group(*parts)


def _run_head(run: "Run") -> Text:
    text = Text(printable(run.name or run.worker_name), "bold").append(f"  {run.run_id}  ", "dim")
    text.append(str(run.state), STATE_STYLE[run.state])
    if run.reason:
        text.append(f"  {printable(run.reason.splitlines()[0])}")
    text.append(f"\n{progress_words(run)}")
    gpus = ", ".join(run.granted) or "no GPU"
    held = f", held by {run.held_by}" if run.held_by else ""
    text.append(f"\n{gpus}{held}", "dim")
    for word in (run.waiting, run.life, run.telemetry):
        text.append(f"\n{printable(word)}" if word else "", "yellow")
    return text


def _history(run: "Run") -> Text:
    moves = [f"{clock(move.at)[11:19]} {move.new}" for move in run.history]
    return Text(" → ".join(moves), "dim")


def _curves(curves: "list[Curve]", width: int) -> RenderableType:
    if not curves:
        return Text("nothing measured yet", "dim")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "last", "min", "max"):
        table.add_column(heading, no_wrap=True, justify="right" if heading else "left")
    table.add_column("", no_wrap=True)
    for curve in curves:
        if curve.mean:
            numbers = (curve.mean[-1], min(curve.min), max(curve.max))
            table.add_row(
                Text(printable(curve.name)),
                *map(number, numbers),
                Text(sparkline(curve.mean, width), "green"),
            )
    return table


def _log(lines: list[str], room: int, width: int) -> list[RenderableType]:
    shown = lines[-room:] if room else []
    return [Text(printable(line)[:width], no_wrap=True) for line in shown] or [Text("nothing printed", "dim")]


def _height(parts: list[RenderableType], size: ConsoleDimensions) -> int:
    console = Console(width=size.width, height=size.height)
    return len(console.render_lines(Group(*parts), console.options))


def _name(run: "Run") -> Text:
    return Text(printable(run.name or run.worker_name))


def _state(run: "Run") -> Text:
    return Text(str(run.state), STATE_STYLE[run.state])


def _time_left(run: "Run") -> Text:
    return Text("" if run.eta_s is None else format_duration(run.eta_s))


def _rate(run: "Run") -> Text:
    return Text(number(run.summary.steps_per_s) if run.state is RunState.EXECUTING else "")


def _return(run: "Run") -> Text:
    return Text("" if run.summary.last_return is None else number(run.summary.last_return))


def _picture(run: "Run", width: int) -> Text:
    """What is worth saying about a run is worth more than its curve."""
    words = note(run)
    return Text(words, "yellow") if words else Text(sparkline(run.summary.recent_returns, width), "green")


def _age(run: "Run") -> Text:
    return Text(format_duration(time.time() - run.created_at), "dim")


def _gpu_count(run: "Run") -> Text:
    return Text(str(len(run.granted) or ""))


COLUMNS = (
    Column("run", lambda run: Text(run.run_id[:SHORT_ID])),
    Column("name", _name, ratio=3),
    Column("state", _state),
    Column("progress", _progress, needs=72),
    Column("left", _time_left, needs=110, is_number=True),
    Column("steps/s", _rate, needs=90, is_number=True),
    Column("return", _return, is_number=True),
    Column("returns", partial(_picture, width=12), up_to=130, ratio=4),
    Column("returns", partial(_picture, width=24), needs=130, ratio=4),
    Column("age", _age, needs=100, is_number=True),
    Column("GPU", _gpu_count, needs=120, is_number=True),
)
