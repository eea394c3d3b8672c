"""The facts of one run in words, as `mosaic show` and the window list them. An empty text: nothing to tell."""

from datetime import datetime
from typing import TYPE_CHECKING

from mosaic.model.machine import format_cpus, format_memory
from mosaic.model.states import RunState
from mosaic.model.where_values import plain_text
from mosaic.present.durations import format_duration
from mosaic.present.scores import count, describe_score, has_no_mean, is_evaluation, is_rate_known, margin
from mosaic.present.text import number, printable

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.present.best_checkpoint import Best

SHORTEST_WAIT_S = 1.0  # shorter waits are not shown


def duration(run: "Run") -> tuple[str, str]:
    """What the time is called, and how long: the time spent waiting for CPUs, memory or GPUs is separate."""
    if run.origin:  # its history is that of the import
        return "duration", format_duration(run.duration_s)
    started = next((move.at for move in run.history if move.new is not RunState.INIT), None)
    if started is None and not run.state.is_over:
        return "waiting", format_duration(run.duration_s)
    waited = max(0.0, started - run.created_at) if started else 0.0
    took = format_duration(max(0.0, run.duration_s - waited))
    after = f", after waiting {format_duration(waited)}" if waited >= SHORTEST_WAIT_S else ""
    return "duration" if run.state.is_over else "running", took + after


def env_steps(run: "Run") -> str:
    """`31,000 of 50,000, 4310 per second`."""
    if is_evaluation(run) and not run.summary.env_steps:
        return ""  # its progress is counted in episodes
    steps = f"{run.summary.env_steps:,}" if run.summary.env_steps else ""
    total = f" of {run.total_steps:,}" if run.total_steps else ""
    rate = f", {number(run.summary.steps_per_s)} per second" if is_rate_known(run) else ""
    return f"{steps or '0'}{total}{rate}" if steps or total else ""


def returns(run: "Run") -> str:
    s = run.summary
    if s.mean_return is None:
        return ""
    over = f"the last {count(s.mean_over, 'training episode')} of {s.training_episodes:,}"
    return f"mean return {number(s.mean_return)} over {over}"


def evaluation(run: "Run") -> str:
    """The result of an evaluation run, or of the newest evaluation during a training."""
    s = run.summary
    if has_no_mean(run) or (is_evaluation(run) and s.eval_mean is not None):
        return describe_score(run)
    if s.eval_mean is None:
        return ""
    interval = f" ± {margin(s.eval_interval)}" if s.eval_interval is not None else ""
    newest = f"newest: mean return {number(s.eval_mean)}{interval} over {count(s.eval_over, 'episode')}"
    return newest if s.eval_over == s.eval_episodes else f"{newest} (of {s.eval_episodes:,} in total)"


def best(found: "Best | None") -> str:
    if found is None:
        return ""
    over = f" over {count(found.episodes, 'episode')}" if found.episodes else ""
    return f"checkpoints/best: score {number(found.score)}{over}, at env step {found.step:,}"


def stored(run: "Run") -> str:
    """`512 events (500 step lines, 12 lifecycle lines)`."""
    s = run.summary
    other = s.events - s.steps - s.episodes - s.metrics
    counts = {"step line": s.steps, "episode": s.episodes, "metric line": s.metrics, "lifecycle line": max(0, other)}
    kinds = ", ".join(count(many, kind) for kind, many in counts.items() if many)
    return f"{count(s.events, 'event')} ({kinds})" if kinds else count(s.events, "event")


def python(run: "Run") -> str:
    """The interpreter of a program of the user's, or the environment of a script; empty for a worker."""
    worker = ((run.config or {}).get("metadata") or {}).get("worker") or {}
    if worker.get("python"):
        return printable(str(worker["python"]))
    if not worker.get("script"):
        return ""
    return f"the environment of {printable(str(worker['variant']))}" if worker.get("variant") else "MOSAIC's own"


def requests(run: "Run") -> str:
    memory = f", {format_memory(run.memory_mb)} of memory" if run.memory_mb else ""
    return f"{format_cpus(run.cpus)}{memory}" if run.cpus or memory else ""


def gpus(run: "Run") -> str:
    if run.granted:
        return " ".join(run.granted)
    mandatory = ", mandatory" if run.gpus_mandatory else ""
    return f"{run.gpus_requested} requested{mandatory}, none granted now" if run.gpus_requested else ""


def place(run: "Run") -> str:
    """`slurm:gpu, node17, job 4711`; empty for a run on the daemon's machine."""
    if not run.on:
        return ""
    job = run.job.rpartition(" ")[2]  # before it is released, the job's text says so
    return ", ".join(filter(None, (printable(run.on), printable(run.node), f"job {printable(job)}" if job else "")))


def unchecked(run: "Run") -> str:
    """`unchecked: the worker publishes no schema`; empty if the settings were checked."""
    return f"unchecked: {printable(run.settings_note)}" if run.settings_note else ""


def experiment(run: "Run") -> str:
    """`lr-sweep: learning_rate=0.001 seed=2`; empty for a run that belongs to none."""
    axes = " ".join(f"{key}={plain_text(value)}" for key, value in run.axes.items())
    return printable(f"{run.experiment}: {axes}" if axes else run.experiment)


def how_derived(relation: str) -> str:
    """What was done with the parent of a run."""
    return {"resume": "resumed", "eval": "evaluated"}.get(relation, relation)


def wanted_parts(run: "Run") -> int:
    """How many runs are to do a part of this one."""
    parts = ((run.config or {}).get("payload") or {}).get("parts") or ()
    return sum(int(part.get("count") or 1) for part in parts)


def slot(run: "Run") -> tuple[str, int] | None:
    """Which part of its parent a run is: its name and index. None for a run that is not a part."""
    role = ((run.config or {}).get("metadata") or {}).get("role")
    return (str(role["part"]), int(role["index"])) if role else None


def part(run: "Run") -> str:
    """`env-1  READY  slurm:cpu, node17, job 4711  01M7…  replaced 2 times`."""
    role = (run.config or {})["metadata"]["role"]
    replaced = role["number"] - 1
    times = f"replaced {count(replaced, 'time')}" if replaced else ""
    words = (f"{role['part']}-{role['index']}", str(run.state), place(run) or "this machine", run.run_id, times)
    return "  ".join(filter(None, words))


def clock(at: float) -> str:
    """A time of day with milliseconds: 2026-11-16 20:31:07.250."""
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
