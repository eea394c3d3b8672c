"""A Ray instance of this run's own: its processes are children of this one, its files are in a private folder.

Its promises:

1. It neither joins nor is found by another instance: a token of its own, ports that the system chooses, only on this
   machine's loopback address.
2. A start that fails is repeated: on a busy machine Ray's raylet gives up when its agents take too long to start.
3. When it ends, none of its processes is left, also if they do not react.
"""

import atexit
import contextlib
import glob
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping

from mosaic_sdk.cli import STOPPED, WorkFailed
from mosaic_sdk.lab import processes

_PAUSE_S = 2.0
_OBJECT_STORE_BYTES = 256 * 1024 * 1024


@contextlib.contextmanager
def ray_instance(
    folder: str, *, cpus: int, gpus: int, attempts: int, is_stopping: Callable[[], bool] = lambda: False
) -> Iterator[None]:
    """Start it, with its files in `folder`. `is_stopping`: its processes have got SIGTERM too; do not wait for them."""
    os.environ.update(environment(folder))
    os.environ.pop("RAY_ADDRESS", None)  # of an instance that the user has
    before = processes.children()
    processes.subreaper(True)  # what a dead raylet leaves behind becomes a child of this process
    try:
        _start(folder, cpus, gpus, attempts, before)
        yield
    finally:
        if is_stopping():
            _leave_at_exit()
        else:
            _shut_down()
        end_children(before)
        processes.subreaper(False)


def environment(folder: str) -> dict[str, str]:
    """Variables that Ray reads when it is imported, and that its processes inherit."""
    return {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_TMPDIR": folder,
        "RAY_DEDUP_LOGS": "0",
        "RAY_enable_metrics_collection": "0",
        "RAY_raylet_start_wait_time_s": "120",
        "RAY_agent_register_timeout_ms": "120000",
        # MOSAIC accounts for the memory of a run; Ray would kill its own processes because of other runs.
        "RAY_memory_monitor_refresh_ms": "0",
    }


def _start(folder: str, cpus: int, gpus: int, attempts: int, before: set[int]) -> None:
    for attempt in range(1, attempts + 1):
        try:
            _init(folder, cpus, gpus)
            return
        except Exception as error:  # noqa: BLE001  # Ray raises its own, the system's and gRPC's
            reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        _shut_down()
        end_children(before)
        print(f"Attempt {attempt} of {attempts} to start Ray failed. {reason}{_last_words(folder)}", file=sys.stderr)
        time.sleep(_PAUSE_S * attempt)
    raise WorkFailed(
        f"Ray could not be started in {attempts} attempts. The machine may be too busy: start the run again, run fewer "
        "at once, or set num_env_runners=0 and num_learners=0, which needs no Ray instance."
    )


def _init(folder: str, cpus: int, gpus: int) -> None:
    import ray
    from ray._private import utils

    # Ray would replace the handler of SIGTERM, and a cancelled training would end without its checkpoint.
    utils.set_sigterm_handler = lambda handler: None
    ray.init(
        address="local",
        num_cpus=cpus,
        num_gpus=gpus,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        object_store_memory=_OBJECT_STORE_BYTES,
        _temp_dir=folder,
        _node_ip_address="127.0.0.1",
    )


def _leave_at_exit() -> None:
    """End this process without Ray's own exit handlers, after a stop: they would wait for the instance, which is gone,
    and without them its client crashes while Python frees it."""

    def leave() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(STOPPED)

    atexit.register(leave)  # the last to be registered is the first to be called


def _shut_down() -> None:
    import ray

    with contextlib.suppress(Exception):  # what is left is killed
        ray.shutdown()


def end_children(before: set[int], limit_s: float = 10.0) -> None:
    """Kill all descendants of this process that began after `before`, and wait until they are gone."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        left = descendants(processes.children() - before)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _reap(left)
        time.sleep(0.05)


def descendants(roots: set[int]) -> set[int]:
    """These processes and all below them."""
    parents = _parents()
    found, new = set(), set(roots)
    while new:
        found |= new
        new = {pid for pid, parent in parents.items() if parent in found} - found
    return found


def _parents() -> Mapping[int, int]:
    found = {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError), open(stat) as file:
            found[int(stat.split("/")[2])] = int(file.read().rpartition(")")[2].split()[1])
    return found


def _reap(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ChildProcessError, OSError):
            os.waitpid(pid, os.WNOHANG)


def _last_words(folder: str) -> str:
    """The line of the raylet's own log that says why it gave up; a stack follows it."""
    logs = sorted(glob.glob(os.path.join(folder, "session_2*", "logs", "raylet.err")))
    lines: list[str] = []
    for path in logs[-1:]:
        with contextlib.suppress(OSError), open(path, errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    reasons = [line for line in lines if "Check failed" in line or "Timed out" in line] or lines[-1:]
    return f" The raylet's message: {reasons[0][:300]}" if reasons else ""
