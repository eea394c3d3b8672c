"""How a run ended: the final state and its reason, from exit.json and the last lines of stderr."""

import re
from collections.abc import Mapping
from typing import Any

from mosaic.model.run import RunRecord
from mosaic.model.states import RunState

Ending = tuple[RunState, str]  # the final state, and why
GPU_MEMORY = re.compile(
    r"CUDA out of memory|torch\.(cuda\.)?OutOfMemoryError|CUDA_ERROR_OUT_OF_MEMORY|RESOURCE_EXHAUSTED: .*memory", re.I
)
MAIN_MEMORY = re.compile(r"\bMemoryError\b|std::bad_alloc|Cannot allocate memory")
# How the reason of a run begins that its cluster ended, and not the run itself or a user.
BY_CLUSTER = ("preempted: ", "time limit of Slurm: ", "node failed: ", "requeued outside MOSAIC: ")
LAST_LINES = 8
STACK_LINES = 80  # an autopsy prints the stacks of every thread


def final_state(
    record: RunRecord, exit: Mapping[str, Any], failed_message: str, stderr: str, end_reason: str = ""
) -> Ending:
    """The final state of a run, and why. `end_reason` is the dispatcher's own, when it ended the run itself."""
    if exit.get("unkillable"):
        return RunState.FAULTED, "unkillable: SIGKILL did not end its processes within 60 s; its GPUs are drained"
    if record.cancel_requested:
        return cancelled(record)
    if not exit.get("ended_by") and exit.get("exit_code") == 0:
        if failed_message:
            return RunState.FAULTED, f"the worker reported run_failed: {failed_message}"
        return RunState.TERMINATED, _unread_commands(exit)
    lines = STACK_LINES if exit.get("ended_by") == "hang" else LAST_LINES
    return RunState.FAULTED, _with_last_lines(end_reason or _cause(record, exit, stderr), stderr, lines)


def cancelled(record: RunRecord, otherwise: str = "cancelled by request") -> Ending:
    """The end of a run whose cancel was requested: while it lives, its row has the reason that was given."""
    return RunState.CANCELLED, record.reason or otherwise


def _cause(record: RunRecord, exit: Mapping[str, Any], stderr: str) -> str:
    match exit.get("ended_by"):
        case "time limit":
            return f"time limit: it ran longer than {record.limits.time_s or 0:g} s"
        case "hang":
            return "hang: no output and no heartbeat"
        case "spawn error":
            return f"spawn error: {exit.get('error') or 'the worker could not be started'}"
        case "holder died":
            return "holder died: the process that held this run was killed, and its process tree with it"
        case "lost contact":
            return "lost contact: its node got no answer of the daemon for the time that its cluster's file allows"
        case "cancel":
            return "the holder received a SIGTERM that MOSAIC did not send"
    if exit.get("signal"):
        return _killed(exit)
    return _failed(exit, stderr)


def _unread_commands(exit: Mapping[str, Any]) -> str:
    """A clean exit needs no reason, unless somebody is waiting for an answer to a command."""
    unread = exit.get("commands_unread")
    return f"finished with exit code 0; commands that its worker did not read: {unread}" if unread else ""


def _killed(exit: Mapping[str, Any]) -> str:
    if exit["signal"] == "SIGKILL" and exit.get("oom_kills"):
        return f"out of memory (likely): killed by SIGKILL while the kernel was short of memory{_peak(exit)}"
    return f"killed by {exit['signal']}"


def _failed(exit: Mapping[str, Any], stderr: str) -> str:
    code = exit.get("exit_code")
    if GPU_MEMORY.search(stderr):
        return f"out of GPU memory (exit code {code})"
    if MAIN_MEMORY.search(stderr):
        return f"out of memory (likely; exit code {code}){_peak(exit)}"
    return f"exit code {code}"


def _peak(exit: Mapping[str, Any]) -> str:
    kb = exit.get("max_rss_kb")
    return f", peak {kb / 1024:,.0f} MiB" if kb else ""


def _with_last_lines(cause: str, stderr: str, count: int) -> str:
    lines = [line for line in stderr.splitlines() if line.strip()][-count:]
    return "\n".join([cause, *lines])
