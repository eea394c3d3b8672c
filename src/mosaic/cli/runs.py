"""`mosaic runs` and `mosaic show`."""

import argparse
import json
import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected
from mosaic.cli.durations import format_duration
from mosaic.cli.paint import STATE_STYLE, bar, number, paint, printable, sparkline
from mosaic.cli.table import clip, render_table
from mosaic.cli.verb import RUN_HELP, add_json, add_verb, count
from mosaic.model.states import LIVE_STATES, RunState

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run

SHORT_ID = 13  # the ten letters of the time and three of chance
NEWEST = 20
MOST_VALUES = 40


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs,
        "runs",
        list_runs,
        "list the runs, newest first",
        "mosaic runs\nmosaic runs --state live\nmosaic runs --all --json",
    )
    parser.add_argument("--all", action="store_true", help=f"not only the newest {NEWEST}")
    parser.add_argument("--limit", type=count, default=NEWEST, metavar="N", help="the newest N")
    parser.add_argument("--state", type=parse_states, default=(), help="FAULTED, EXECUTING,READY …, or live, or over")
    add_json(parser)

    parser = add_verb(
        verbs, "show", show_run, "tell everything about one run", "mosaic show 01JCQ\nmosaic show 01JCQ --json"
    )
    parser.add_argument("run", metavar="RUN", help=RUN_HELP)
    add_json(parser)


def parse_states(text: str) -> tuple[RunState, ...]:
    groups = {"LIVE": LIVE_STATES, "OVER": tuple(state for state in RunState if state.is_over)}
    states: list[RunState] = []
    for name in text.upper().split(","):
        if name not in groups and name not in RunState.__members__:
            raise argparse.ArgumentTypeError(
                f"'{name}' is not a state: {', '.join(RunState.__members__)}, live or over"
            )
        states += groups.get(name) or (RunState(name),)
    return tuple(states)


def list_runs(args: argparse.Namespace) -> int:
    with connected(args) as client:
        found = client.list_runs(args.state, 0 if args.all else args.limit)
    if args.json:
        print(json.dumps([run.to_dict() for run in found.runs], indent=1))
        return 0
    print(runs_table(found.runs) if found.runs else "No runs. Start one with: mosaic run toy steps=500 rate=50")
    if found.total > len(found.runs):
        print(paint(f"… and {found.total - len(found.runs)} more: mosaic runs --all", "dim"))
    return 0


def runs_table(runs: "tuple[Run, ...]") -> str:
    headings = ("RUN", "NAME", "WORKER", "STATE", "DONE", "STEPS/S", "RETURN", "TIME", "AGO", "NOTE")
    return render_table(headings, [_row(run) for run in runs], right=frozenset({4, 5, 6, 7, 8}))


def _row(run: "Run") -> tuple[str, ...]:
    return (
        short_id(run.run_id),
        clip(printable(run.name), 24),
        clip(run.worker_name, 16),
        paint(str(run.state), STATE_STYLE[run.state]),
        "-" if run.progress is None else f"{run.progress:.0%}",
        number(run.summary.steps_per_s) if run.state is RunState.EXECUTING else "-",
        number(run.summary.last_return),
        format_duration(run.duration_s),
        format_duration(time.time() - run.created_at),
        clip(note(run), 40),
    )


def short_id(run_id: str) -> str:
    """Scripts get the whole id, people as much of it as they need."""
    return run_id[:SHORT_ID] if sys.stdout.isatty() else run_id


def note(run: "Run") -> str:
    """The one thing worth saying about a run in a listing."""
    ending = "ending" if run.cancel_wished and not run.state.is_over else ""
    told = run.reason if run.state is not RunState.TERMINATED else ""
    words = (ending, run.waiting_for, run.life, run.telemetry, told)
    return printable(next((word for word in words if word), "").split("\n")[0])


def show_run(args: argparse.Namespace) -> int:
    with connected(args) as client:
        run = client.get_run(args.run)
    print(json.dumps(run.to_dict(), indent=1) if args.json else describe(run))
    return 0


def describe(run: "Run") -> str:
    sections = [_headline(run), _facts(run), _history(run), _metrics(run), _config(run)]
    return "\n\n".join(section for section in sections if section)


def _headline(run: "Run") -> str:
    state = paint(str(run.state), STATE_STYLE[run.state])
    reason = f": {run.reason.strip()}" if run.reason else ""
    return f"{paint(run.name or run.worker_name, 'bold')}  {run.run_id}\n{state}{reason}"


def _facts(run: "Run") -> str:
    facts = {
        "worker": run.worker_name,
        "waiting for": run.waiting_for,
        "life": run.life,
        "progress": _progress(run),
        "returns": f"{sparkline(run.summary.recent_returns, 40)}  last {number(run.summary.last_return)}"
        if run.summary.recent_returns
        else "",
        "events": _counts(run),
        "telemetry": run.telemetry,
        "GPUs": _gpus(run),
        "held by": run.held_by,
        "time limit": format_duration(run.time_limit_s) if run.time_limit_s else "",
        "took" if run.state.is_over else "running for": format_duration(run.duration_s),
        "tags": " ".join(run.tags),
        "attempt": str(run.attempt) if run.attempt > 1 else "",
        "folder": run.run_dir,
    }
    return "\n".join(f"{paint(f'{name:<12}', 'dim')} {value}" for name, value in facts.items() if value)


def _progress(run: "Run") -> str:
    steps = f"step {run.summary.last_step}" if run.summary.last_step >= 0 else ""
    if run.progress is None:
        return steps
    eta = f", {format_duration(run.eta_s)} left" if run.eta_s is not None else ""
    rate = f", {number(run.summary.steps_per_s)} steps/s" if run.state is RunState.EXECUTING else ""
    return f"{bar(run.progress, 24)} {run.progress:.0%} of {run.total_steps} steps{rate}{eta}"


def _counts(run: "Run") -> str:
    s = run.summary
    kinds = {"steps": s.steps, "episodes": s.episodes, "metrics": s.metrics, "rejected lines": s.rejects}
    told = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count)
    return f"{s.events} ({told})" if told else str(s.events)


def _gpus(run: "Run") -> str:
    if run.granted:
        return " ".join(run.granted)
    must = ", mandatory" if run.gpus_mandatory else ""
    return f"{run.gpus_requested} asked for{must}, none held now" if run.gpus_requested else ""


def _history(run: "Run") -> str:
    lines = [
        f"{clock(move.at)}  {move.new!s:<10}  {move.reason.splitlines()[0] if move.reason else ''}".rstrip()
        for move in run.history
    ]
    return "\n".join([paint("history", "bold"), *lines]) if lines else ""


def _metrics(run: "Run") -> str:
    # The shorter its path, the nearer to what one asks first: episode/score before actor/rpc/replay/sent_rate.
    values = sorted(run.summary.last_values.items(), key=lambda item: (item[0].count("/"), item[0]))
    shown, left = values[:MOST_VALUES], len(values[MOST_VALUES:])
    width = max((len(name) for name, _ in shown), default=0)
    lines = [f"{name:<{width}}  {number(value)}" for name, value in shown]
    if left:
        lines.append(paint(f"… and {left} more: mosaic show {run.run_id} --json", "dim"))
    return "\n".join([paint("last values", "bold"), *lines]) if lines else ""


def _config(run: "Run") -> str:
    return f"{paint('config', 'bold')}\n{json.dumps(run.config, indent=1)}" if run.config else ""


def clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
