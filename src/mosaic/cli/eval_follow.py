"""Following an evaluation that plays by itself: a line per lane on a terminal, plain lines elsewhere."""

import sys
import time
from typing import TYPE_CHECKING

from mosaic.cli.eval_session import Session
from mosaic.cli.follow import LINE_EVERY_S, TICK_S, opened
from mosaic.cli.inbox import Inbox
from mosaic.cli.safe_output import raw
from mosaic.cli.terminal_text import STATE_STYLE, is_screen
from mosaic.present.durations import format_duration
from mosaic.present.states import explain
from mosaic.present.text import bar, number, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from mosaic.client import Run, TrainerClient
    from mosaic.client.evaluation_state import EvaluationState
    from mosaic.client.lanes import LaneState

NAME_WIDTH, BAR_WIDTH = 16, 12


def follow_lanes(client: "TrainerClient", run: "Run") -> "Run":
    """Show the evaluation until it is over; returns its run."""
    with Inbox(client) as inbox:
        session = Session(inbox, run)
        if is_screen(sys.stdout):
            _show_live(session, inbox)
        else:
            _print_lines(session, inbox)
        return session.run


def _show_live(session: Session, inbox: Inbox) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(file=raw(sys.stdout), highlight=False)
    view = Live(_drawn(session, console), console=console, auto_refresh=False, transient=True)
    with opened(view) as live:
        while not session.is_over:
            inbox.wait(TICK_S)
            session.refresh()
            live.update(_drawn(session, console), refresh=True)


def _drawn(session: Session, console: "Console") -> "Text":
    from rich.text import Text

    run, evaluation = session.run, session.evaluation
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(printable(run.name), "bold").append(f"  {run.run_id}\n", "dim")
    text.append(explain(run), "yellow" if run.life or run.waiting_for else STATE_STYLE[run.state])
    text.append(f"\n{progress(evaluation)}")
    room = max(1, console.height - 5)
    for lane in evaluation.lanes[:room]:
        text.append(f"\n{lane_line(lane)}", "red" if lane.failures else "")
    if len(evaluation.lanes) > room:
        text.append(f"\n… and {len(evaluation.lanes) - room} more lanes", "dim")
    return text


def _print_lines(session: Session, inbox: Inbox) -> None:
    print(f"Run {session.run.run_id} ({printable(session.run.name)})", flush=True)
    printed, due = "", 0.0
    failures: dict[int, int] = {}  # by lane
    while not session.is_over:
        inbox.wait(TICK_S)
        session.refresh()
        evaluation = session.evaluation
        state = explain(session.run)
        if state != printed and not session.run.state.is_over:
            printed = state
            print(f"{format_duration(session.run.duration_s)}  {state}", flush=True)
        for lane in evaluation.lanes:
            if lane.failures > failures.get(lane.index, 0):
                failures[lane.index] = lane.failures
                print(f"{printable(lane.name)} failed: {printable(lane.failure)}", flush=True)
        if evaluation.lanes and time.monotonic() >= due and not session.run.state.is_over:
            due = time.monotonic() + LINE_EVERY_S
            print(
                f"{format_duration(session.run.duration_s)}  {progress(evaluation)}  {_means(evaluation)}", flush=True
            )


def _means(evaluation: "EvaluationState") -> str:
    return " · ".join(
        f"{printable(lane.name)} {_done(lane)} mean {number(lane.mean_return)}" for lane in evaluation.lanes
    )


def progress(evaluation: "EvaluationState") -> str:
    """`━━━╌╌╌  12/60 episodes  2m left`"""
    done = sum(lane.episodes_done for lane in evaluation.lanes)
    total = sum(lane.episodes_total or 0 for lane in evaluation.lanes)
    if not total:
        return "no episode has begun yet"
    eta = evaluation.eta_s
    left = f"  {format_duration(eta)} left" if eta is not None and done < total else ""
    return f"{bar(done / total, 30)}  {done}/{total} episodes{left}"


def lane_line(lane: "LaneState") -> str:
    """A lane in one line: its progress, its episode, its last action, and what an LLM wrote."""
    fraction = lane.episodes_done / lane.episodes_total if lane.episodes_total else 0.0
    action = lane.action_name or ("" if lane.action is None else str(lane.action))
    parts = [
        f"{printable(lane.name)[:NAME_WIDTH]:<{NAME_WIDTH}}",
        bar(fraction, BAR_WIDTH),
        f"{_done(lane):>7}",
        f"mean {number(lane.mean_return):<7}",
        f"seed {'-' if lane.seed is None else lane.seed}",
        f"step {lane.step_index + 1}",
        f"return {number(lane.episode_return)}",
        printable(action),
        *([f"{lane.failures} failed, {printable(lane.failure)}"] if lane.failures else []),
        printable(lane.text),
    ]
    return "  ".join(part for part in parts if part)


def _done(lane: "LaneState") -> str:
    return f"{lane.episodes_done}/{lane.episodes_total or '?'}"
