"""Draws the screen of `mosaic watch`: the list of runs or the help, and the footer below them.

An open run is drawn by `watch_run`. Drawing also sets how many rows of the list fit, and formats only those.
"""

import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import ConsoleDimensions, Group
from rich.text import Text

from mosaic.cli.runs import SHORT_ID
from mosaic.cli.terminal_text import STATE_STYLE
from mosaic.present.durations import format_duration
from mosaic.present.folded import name_of_line
from mosaic.present.run_cells import Surroundings, name_of
from mosaic.present.run_cells import column as shared
from mosaic.present.runs import note
from mosaic.present.scores import score, score_cell, trace
from mosaic.present.states import MEANING
from mosaic.present.text import bar, number, printable

if TYPE_CHECKING:
    from mosaic.cli.watch_state import WatchState
    from mosaic.client import Run

FRAME_ROWS = 3  # title, headings, keys
LIST_KEYS = ("↑↓ choose", "enter open", "/ filter", "s sort", "c cancel", "? help", "q quit")
RUN_KEYS = ("esc back", "↑↓ scroll", "/ filter", "c cancel", "? help", "q quit")

HELP = (
    ("↑ ↓ k j, wheel", "move"),
    ("PgUp PgDn, space", "scroll one page"),
    ("Home End, g G", "first, last"),
    ("Enter", "open the run; list the runs of the experiment"),
    ("e", "fold the runs of an experiment into one line, or list them"),
    ("Esc, Backspace", "back; clear the filter"),
    ("/", "filter: words, state:live env:pong return>400 age<2h -word; in a run: by metric"),
    ("s S", "next, previous sort order"),
    ("c", "cancel the run (asks first)"),
    ("q", "quit; the runs continue"),
    ("Shift and mouse", "select text"),
)


def draw(state: "WatchState", size: ConsoleDimensions) -> Group:
    """At most as many lines as the terminal has, none longer than it is wide."""
    if state.is_help:
        lines = _help(size)
    elif state.open_run:
        from mosaic.cli.watch_run import draw_run

        lines = draw_run(state, size)
    else:
        lines = _list(state, size)
    body = lines[: size.height - 1]
    body += [Text()] * (size.height - 1 - len(body))
    return Group(*map(_one_line, [*body, _footer(state, size.width)]))


def _one_line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _list(state: "WatchState", size: ConsoleDimensions) -> list[Text]:
    scroll = state.scroll
    scroll.page = max(1, size.height - FRAME_ROWS)
    scroll.show(state.place, len(state.shown))
    shown = state.shown[scroll.top : scroll.top + scroll.page]
    if not shown:
        return [_title(state, size.width), Text(), _nothing(state)]
    layout = Layout(size.width)
    rows = [layout.row(run, is_marked=scroll.top + at == state.place) for at, run in enumerate(shown)]
    return [_title(state, size.width), layout.headings(state.order), *rows]


def _title(state: "WatchState", width: int) -> Text:
    live = sum(not run.state.is_over for run in state.runs.values())
    facts = [f"{live} live, {state.total} in total", f"sort: {state.order}"]
    if state.filter:
        facts.append(f"filter: {state.filter} ({len(state.shown)} match)")
    first, last = state.scroll.top + 1, min(state.scroll.top + state.scroll.page, len(state.shown))
    if last - first + 1 < len(state.shown):
        facts.append(f"{first}–{last} of {len(state.shown)}")
    title = Text("MOSAIC  " if width >= 60 else "", "bold").append(" · ".join(map(printable, facts)), "dim")
    now = time.strftime("%H:%M:%S")
    if title.cell_len + len(now) + 3 <= width:
        title.append(f"   {now}", "dim")
    return title


def _nothing(state: "WatchState") -> Text:
    if state.filter:
        return Text(f"No run matches '{printable(state.filter)}'. Press Esc to clear the filter.", "dim")
    return Text("No runs yet. Start one in another terminal: mosaic run toy steps=500 rate=50", "dim")


def _footer(state: "WatchState", width: int) -> Text:
    if run := state.question:
        name = cut(name_of(run), max(8, width - 30))
        which = "all its live runs" if name_of_line(run.run_id) else run.run_id[:SHORT_ID]
        return Text(f"Cancel {name} ({which})? y/n", "bold yellow")
    if state.is_typing:
        text = state.open_run.filter if state.open_run else state.filter
        problem = "" if state.open_run else state.filter_problem
        hint = (f"  {problem}", "yellow") if problem else ("  enter: keep, esc: clear", "dim")
        return Text(f"/{printable(text)}▏", "bold").append(*hint)
    if said := state.note or state.problem or ("" if state.open_run else state.filter_problem):
        return Text(printable(said), "yellow")
    return Text(_keys(RUN_KEYS if state.open_run else LIST_KEYS, width) + _meaning_of_return(state, width), "dim")


def _keys(keys: Sequence[str], width: int) -> str:
    """All keys, or on a narrow terminal the last two: help and quit."""
    line = " · ".join(keys)
    return line if cell_len(line) <= width else " · ".join(keys[-2:])


def _meaning_of_return(state: "WatchState", width: int) -> str:
    most = max((run.summary.mean_over for run in state.shown), default=0)
    meaning = f"   return: mean of the last {most} episodes"
    return meaning if most and not state.open_run and width >= cell_len(" · ".join(LIST_KEYS)) + len(meaning) else ""


def _help(size: ConsoleDimensions) -> list[Text]:
    lines = [Text("Keys", "bold")]
    lines += [Text(f"{keys:<18}", "cyan").append(does) for keys, does in HELP]
    lines += [Text(), Text("States", "bold")]
    lines += [Text(f"{state!s:<18}", STATE_STYLE[state]).append(meaning) for state, meaning in MEANING.items()]
    about = "return: mean of the newest episodes (evaluations: ± 95 % interval); returns: curve of the whole run"
    lines += [Text(), *(Text(line, "dim") for line in textwrap.wrap(about, max(20, size.width)))]
    return lines[: size.height - 1]


# ---- the table


@dataclass(frozen=True)
class Column:
    heading: str
    cell: "Callable[[Run, int], tuple[str, str]]"  # its text for this width, and its style
    width: int  # 0: an equal share of the remaining width
    needs: int = 0  # shown on terminals at least this wide …
    up_to: int = 1 << 30  # … and narrower than this
    is_number: bool = False
    order: str = ""  # the sort order that this column shows


class Layout:
    """The columns for a terminal of this width."""

    def __init__(self, width: int) -> None:
        self._columns = [column for column in COLUMNS if column.needs <= width < column.up_to]
        self._gap = "  " if width >= 60 else " "
        fixed = sum(column.width for column in self._columns) + len(self._gap) * (len(self._columns) - 1)
        shares = sum(not column.width for column in self._columns)
        left = max(shares, width - fixed)
        self._widths = [column.width or max(1, left // shares) for column in self._columns]

    def headings(self, order: str) -> Text:
        text = Text(style="dim")
        for column, width in zip(self._columns, self._widths, strict=True):
            mark = "▾" if column.order == order else ""
            text.append(self._gap if text else "").append(pad(column.heading + mark, width, column.is_number))
        return text

    def row(self, run: "Run", is_marked: bool) -> Text:
        text = Text(style="reverse" if is_marked else "")
        for column, width in zip(self._columns, self._widths, strict=True):
            cell, style = column.cell(run, width)
            text.append(self._gap if text else "").append(pad(cell, width, column.is_number), style)
        return text


def cut(text: str, width: int) -> str:
    """The text, cut to this width with an ellipsis if it is longer."""
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def pad(text: str, width: int, right: bool = False) -> str:
    short = cut(text, width)
    space = " " * (width - cell_len(short))
    return space + short if right else short + space


def _progress(run: "Run", width: int) -> tuple[str, str]:
    if run.progress is None:
        return f"{run.summary.env_steps:,} steps" if run.summary.env_steps else "", "dim"
    percent = f"{run.progress:>5.0%}"
    return bar(run.progress, width - len(percent)) + percent, STATE_STYLE[run.state]


def _done(run: "Run", width: int) -> tuple[str, str]:
    return "" if run.progress is None else f"{run.progress:.0%}", ""


def _return(run: "Run", width: int) -> tuple[str, str]:
    text = score_cell(run)
    # Leave out the interval rather than cut a number in two.
    return (text if len(text) <= width else number(score(run))), ""


def _note_or_curve(run: "Run", width: int) -> tuple[str, str]:
    """A note about the run takes precedence over the curve of its returns."""
    text = note(run)
    return (text, "yellow") if text else (trace(run, min(width, 40)), "green")


def _time_left(run: "Run", width: int) -> tuple[str, str]:
    return "" if run.eta_s is None else format_duration(run.eta_s), ""


def _shared(key: str, style: str = "") -> "Callable[[Run, int], tuple[str, str]]":
    """The cell that every screen shows in this column."""
    column = shared(key)
    return lambda run, _: (column.text(run, Surroundings()), style)


COLUMNS = (
    Column(
        "run",
        lambda run, _: ("experiment" if name_of_line(run.run_id) else run.run_id[:SHORT_ID], ""),
        SHORT_ID,
        needs=72,
        order="newest",
    ),
    Column("name", _shared("name"), 0, order="name"),
    Column("state", lambda run, _: (str(run.state), STATE_STYLE[run.state]), 10, order="state"),
    Column("done", _done, 5, needs=52, up_to=80, is_number=True, order="progress"),
    Column("progress", _progress, 15, needs=80, order="progress"),
    Column("left", _time_left, 6, needs=110, is_number=True),
    Column("steps/s", _shared("rate"), 8, needs=90, is_number=True, order="steps/s"),
    Column("return", _return, 7, up_to=100, is_number=True, order="return"),
    Column("return", _return, 12, needs=100, is_number=True, order="return"),
    Column("returns", _note_or_curve, 0, needs=60),
    Column("age", _shared("age", "dim"), 6, needs=100, is_number=True),
    Column("GPU", _shared("gpu"), 4, needs=120, is_number=True),
)
