"""Following the runs of an experiment until all are over: a table on a terminal, plain lines elsewhere."""

import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mosaic.cli.follow import TICK_S, Pace, latest_problem, opened, shall_cancel
from mosaic.cli.inbox import Inbox
from mosaic.cli.live_runs import LiveRuns
from mosaic.cli.safe_output import raw
from mosaic.cli.table import render_table
from mosaic.cli.terminal_text import is_screen
from mosaic.model.states import RunState
from mosaic.present import experiments as shown
from mosaic.present.text import bar, printable

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient

EVERY_MS = 500
LINE_EVERY_S = 10.0
MOST_FAULTS = 20


def follow_group(client: "TrainerClient", name: str) -> int:
    """Show the experiment until its runs are over. Ctrl-C asks whether to detach or cancel."""
    try:
        runs = _last(_show(client, name))
    except KeyboardInterrupt:
        return interrupted(client, name)
    print(ending(name, runs))
    return exit_code(runs)


def wait_group(client: "TrainerClient", name: str) -> int:
    """Wait until all runs are over and print the experiment as JSON."""
    from mosaic.cli.experiment import as_json

    runs = _last(updates(client, name))
    print(json.dumps(as_json(client.experiment(name), runs), indent=1))
    return exit_code(runs)


def _last(each: "Iterator[list[Run]]") -> "list[Run]":
    return deque(each, maxlen=1).pop()


def exit_code(runs: "list[Run]") -> int:
    return 0 if all(run.state is RunState.TERMINATED for run in runs) else 1


def updates(client: "TrainerClient", name: str) -> "Iterator[list[Run]]":
    """The current runs of the experiment at every change and at least once a second, until all are over."""
    with Inbox(client) as inbox:
        live = LiveRuns(inbox, interval_ms=EVERY_MS, experiment=name).follow()
        while True:
            inbox.wait(TICK_S)
            inbox.deliver()
            latest_problem(live)
            if live.is_known:
                runs = shown.current(live.by_id.values())
                yield runs
                if all(run.state.is_over for run in live.by_id.values()):
                    return


def _show(client: "TrainerClient", name: str) -> "Iterator[list[Run]]":
    return _live(client, name) if is_screen(sys.stdout) else _lines(client, name)


def _live(client: "TrainerClient", name: str) -> "Iterator[list[Run]]":
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(file=raw(sys.stdout), highlight=False)
    with opened(Live(Text(""), console=console, auto_refresh=False, transient=True)) as live:
        for runs in updates(client, name):
            text = Text.from_ansi(view(name, runs, console.height))
            text.no_wrap, text.overflow = True, "ellipsis"
            live.update(text, refresh=True)
            yield runs


def _lines(client: "TrainerClient", name: str) -> "Iterator[list[Run]]":
    """A line when the number of runs in a state changes, and now and then."""
    printed, at = "", 0.0
    paces: dict[str, Pace] = {}
    for runs in updates(client, name):
        text = shown.describe_tally(shown.states_of(runs))
        if text != printed or time.monotonic() - at > LINE_EVERY_S:
            printed, at = text, time.monotonic()
            print("  ".join(filter(None, [text, shown.describe_progress(runs)])), flush=True)
        for run in runs:
            # A failure gets a line of its own, once.
            if run.state is RunState.FAULTED and run.run_id not in paces:
                paces[run.run_id] = Pace()
                print(f"{run.run_id}  {printable(run.name)}  {paces[run.run_id].line(run)}", flush=True)
        yield runs


def view(name: str, runs: "list[Run]", height: int = 24) -> str:
    """What a terminal shows: the whole, then a line per group, then the failures."""
    lines = [headline(name, runs)]
    headings, rows, right = shown.table(runs)
    room = max(3, height - 5)
    lines.append(render_table(headings, rows[:room], right))
    if len(rows) > room:
        lines.append(f"… and {len(rows) - room} more groups")
    room = max(0, room - len(rows))
    lines += fault_lines(runs)[:room]
    return "\n".join(lines)


def headline(name: str, runs: "list[Run]") -> str:
    counts = shown.describe_tally(shown.states_of(runs))
    done = f"{bar(shown.progress(runs), 24)} {shown.describe_progress(runs) or '100%'}" if runs else ""
    return "\n".join(filter(None, [f"{name}  {counts}", done]))


def ending(name: str, runs: "list[Run]") -> str:
    headings, rows, right = shown.table(runs)
    return "\n".join(
        [
            f"{name}  {shown.describe_tally(shown.states_of(runs))}",
            render_table(headings, rows, right),
            *fault_lines(runs),
        ]
    )


def fault_lines(runs: "list[Run]") -> list[str]:
    found = shown.faults(runs)
    lines = [f"FAULTED  {point}  {run_id}  {why}" for point, run_id, why in found[:MOST_FAULTS]]
    return [*lines, *([f"… and {len(found) - MOST_FAULTS} more FAULTED"] if len(found) > MOST_FAULTS else [])]


def interrupted(client: "TrainerClient", name: str) -> int:
    if not shall_cancel("the runs continue", "them"):
        print(f"Detached. The runs continue. Look at them with: mosaic experiment show {name}", file=sys.stderr)
        return 130
    client.cancel_runs([run.run_id for run in client.list_runs(experiment=name).runs if not run.state.is_over])
    try:
        print(ending(name, _last(_show(client, name))))
    except KeyboardInterrupt:
        print(f"\nThe runs of {name} are being cancelled.", file=sys.stderr)
    return 130
