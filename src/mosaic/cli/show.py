"""`mosaic show`: everything about one run, as text."""

import argparse
import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from mosaic.cli.best_checkpoint import Best, read_best
from mosaic.cli.connection import connected, host_of
from mosaic.cli.durations import format_duration
from mosaic.cli.scores import count, describe_score, is_evaluation, is_rate_known, margin, trace
from mosaic.cli.show_settings import settings_section, unchecked
from mosaic.cli.states import explain
from mosaic.cli.terminal_text import STATE_STYLE, bar, number, paint, printable
from mosaic.model.errors import UnknownRun
from mosaic.model.machine import format_cpus, format_memory
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.client import Run, TrainerClient

MOST_VALUES = 40
MOST_CHILDREN = 12
SHORTEST_WAIT_S = 1.0  # shorter waits are not shown
NONE: "Mapping[str, Run]" = {}


def show_run(args: argparse.Namespace) -> int:
    with connected(args) as client:
        run = client.get_run(args.run)
        if args.json:
            print(json.dumps(run.to_dict(), indent=1))
            return 0
        relatives = find_relatives(client, run)
    # The folder of a run on another machine cannot be read.
    best = None if host_of(args) else read_best(run.run_dir)
    print(describe(run, relatives, best))
    return 0


def find_relatives(client: "TrainerClient", run: "Run") -> "dict[str, Run]":
    """The parent of a run and its children; deleted runs are left out."""
    found: dict[str, Run] = {}
    for run_id in (run.parent_run_id, *run.children[:MOST_CHILDREN]):
        try:
            if run_id:
                found[run_id] = client.get_run(run_id)
        except UnknownRun:
            continue
    return found


def describe(run: "Run", relatives: "Mapping[str, Run]" = NONE, best: Best | None = None) -> str:
    sections = [_headline(run), _facts(run, relatives, best), _history(run), _metrics(run)]
    sections += [settings_section(run), _config(run)]
    return "\n\n".join(section for section in sections if section)


def _headline(run: "Run") -> str:
    name = f"{paint(printable(run.name or run.worker_name), 'bold')}  {run.run_id}"
    state, _, explanation = explain(run).partition(": ")
    # The explanation contains only the first line of the reason; the rest may be the end of a traceback.
    more = [printable(line) for line in run.reason.strip().split("\n")[1:]] if run.state.is_over else []
    return "\n".join([name, f"{paint(state, STATE_STYLE[run.state])}: {explanation}", *more])


def _facts(run: "Run", relatives: "Mapping[str, Run]", best: Best | None) -> str:
    facts = {
        "worker": run.worker_name,
        "progress": _progress(run),
        "env steps": _env_steps(run),
        "returns": _returns(run),
        "evaluation": _evaluation(run),
        "best": _best(best),
        "stored": _stored(run),
        "rejected": _rejected(run),
        "parent": _relative(run.parent_run_id, run.relation, relatives),
        "children": _children(run, relatives),
        "requests": _requests(run),
        "GPUs": _gpus(run),
        "settings": unchecked(run),
        "held by": run.held_by,
        "time limit": format_duration(run.time_limit_s) if run.time_limit_s else "",
        **_times(run),
        "tags": printable(" ".join(run.tags)),
        "attempt": str(run.attempt) if run.attempt > 1 else "",
        "folder": run.run_dir,
    }
    return "\n".join(f"{paint(f'{name:<12}', 'dim')} {value}" for name, value in facts.items() if value)


def _times(run: "Run") -> dict[str, str]:
    """How long the run took. The time it waited for CPUs, memory or GPUs is shown separately."""
    started = next((move.at for move in run.history if move.new is not RunState.INIT), None)
    if started is None and not run.state.is_over:
        return {"waiting": format_duration(run.duration_s)}
    waited = max(0.0, started - run.created_at) if started else 0.0
    took = format_duration(max(0.0, run.duration_s - waited))
    after = f", after waiting {format_duration(waited)}" if waited >= SHORTEST_WAIT_S else ""
    return {"duration" if run.state.is_over else "running": took + after}


def _progress(run: "Run") -> str:
    if run.progress is None:
        return ""
    eta = f", {format_duration(run.eta_s)} left" if run.eta_s is not None else ""
    return f"{bar(run.progress, 24)} {run.progress:.0%}{eta}"


def _env_steps(run: "Run") -> str:
    steps = f"{run.summary.env_steps:,}" if run.summary.env_steps else ""
    total = f" of {run.total_steps:,}" if run.total_steps else ""
    rate = f", {number(run.summary.steps_per_s)} per second" if is_rate_known(run) else ""
    return f"{steps or '0'}{total}{rate}" if steps or total else ""


def _returns(run: "Run") -> str:
    s = run.summary
    if s.mean_return is None:
        return ""
    episodes = (
        f"{number(s.mean_return)} over the last {count(s.mean_over, 'training episode')} of {s.training_episodes:,}"
    )
    return f"{trace(run, 40)}  mean return {episodes}"


def _evaluation(run: "Run") -> str:
    s = run.summary
    if s.eval_mean is None:
        return ""
    if is_evaluation(run):
        return f"{trace(run, 40)}  {describe_score(run)}"
    interval = f" ± {margin(s.eval_interval)}" if s.eval_interval is not None else ""
    newest = f"newest: mean return {number(s.eval_mean)}{interval} over {count(s.eval_over, 'episode')}"
    return newest if s.eval_over == s.eval_episodes else f"{newest} (of {s.eval_episodes:,} in total)"


def _best(best: Best | None) -> str:
    if best is None:
        return ""
    over = f" over {count(best.episodes, 'episode')}" if best.episodes else ""
    return f"checkpoints/best: score {number(best.score)}{over}, at env step {best.step:,}"


def _stored(run: "Run") -> str:
    s = run.summary
    other = s.events - s.steps - s.episodes - s.metrics
    counts = {"step line": s.steps, "episode": s.episodes, "metric line": s.metrics, "lifecycle line": max(0, other)}
    kinds = ", ".join(count(many, kind) for kind, many in counts.items() if many)
    return f"{count(s.events, 'event')} ({kinds})" if kinds else count(s.events, "event")


def _rejected(run: "Run") -> str:
    rejects = run.summary.rejects
    return f"{count(rejects, 'line')}; see why: mosaic logs {run.run_id} --rejects" if rejects else ""


def _relative(run_id: str, relation: str, relatives: "Mapping[str, Run]") -> str:
    if not run_id:
        return ""
    known = relatives.get(run_id)
    how = {"resume": "resumed", "eval": "evaluated"}.get(relation, relation)
    name = printable(known.name) if known else "deleted"
    return f"{run_id}  {name}{f'  ({how})' if how else ''}"


def _children(run: "Run", relatives: "Mapping[str, Run]") -> str:
    known = [relatives[child] for child in run.children if child in relatives]
    lines = [f"{child.run_id}  {printable(child.name)}  ({child.relation or 'started from it'})" for child in known]
    if left := len(run.children) - len(known):
        lines.append(f"… and {left} more")
    return ("\n" + " " * 13).join(lines)


def _requests(run: "Run") -> str:
    memory = f", {format_memory(run.memory_mb)} of memory" if run.memory_mb else ""
    return f"{format_cpus(run.cpus)}{memory}" if run.cpus or memory else ""


def _gpus(run: "Run") -> str:
    if run.granted:
        return " ".join(run.granted)
    mandatory = ", mandatory" if run.gpus_mandatory else ""
    return f"{run.gpus_requested} requested{mandatory}, none granted now" if run.gpus_requested else ""


def _history(run: "Run") -> str:
    lines = [
        f"{clock(move.at)}  {move.new!s:<10}  {printable(move.reason.splitlines()[0]) if move.reason else ''}".rstrip()
        for move in run.history
    ]
    return "\n".join([paint("history", "bold"), *lines]) if lines else ""


def _metrics(run: "Run") -> str:
    # Short paths first: episode/score is more interesting than actor/rpc/replay/sent_rate.
    values = sorted(run.summary.last_values.items(), key=lambda item: (item[0].count("/"), item[0]))
    shown, left = values[:MOST_VALUES], len(values[MOST_VALUES:])
    width = max((len(printable(name)) for name, _ in shown), default=0)
    lines = [f"{printable(name):<{width}}  {number(value)}" for name, value in shown]
    if left:
        lines.append(paint(f"… and {left} more: mosaic show {run.run_id} --json", "dim"))
    return "\n".join([paint("last values", "bold"), *lines]) if lines else ""


def _config(run: "Run") -> str:
    return f"{paint('config', 'bold')}\n{json.dumps(run.config, indent=1)}" if run.config else ""


def clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
