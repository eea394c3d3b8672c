"""The seam to whatever runs processes: a command with an environment, GPUs and a run folder is started, watched, ended.

`Launcher` is what the dispatcher needs; `LocalLauncher` does it on this machine with one holder per run.
"""

import asyncio
import fcntl
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from mosaic.model import durable, procfs
from mosaic.model.errors import MosaicError
from mosaic.model.failpoints import failpoint
from mosaic.model.rundir import RunDir

log = logging.getLogger(__name__)
HOLDER = Path(__file__).parents[1] / "hold" / "__main__.py"


class Launcher(Protocol):
    def launch(self, rundir: RunDir, launch: dict[str, Any]) -> None:
        """Write launch.json and start the holder of this attempt. Returns before the worker runs."""

    def is_starting(self, rundir: RunDir) -> bool:
        """Whether a holder that this daemon spawned still has to take its lock."""

    def is_held(self, rundir: RunDir) -> bool:
        """Whether a holder lives."""

    def watch(self, rundir: RunDir, gone: Callable[[], None]) -> None:
        """Call `gone` once when the holder ends. Idempotent."""

    def stop(self, rundir: RunDir) -> bool:
        """Ask the holder to end the tree: SIGTERM, grace, SIGKILL. False when it cannot be reached yet."""

    def autopsy(self, rundir: RunDir) -> bool:
        """Ask the holder for the Python stacks of the tree, then for its end."""

    def fence(self, rundir: RunDir) -> int | None:
        """Take the owner's lock, so that no late holder can; None when somebody holds it. Closing lets go."""

    def kill_leftovers(self, rundir: RunDir, started: dict[str, Any]) -> bool:
        """Kill what a dead holder left; True when nothing lives any more."""

    def forget(self, rundir: RunDir) -> None:
        """The run is over: let go of what was kept to watch it."""

    def tail(self, rundir: RunDir) -> None:
        """Start a tailer for a run whose holder is gone. Idempotent."""

    def cpu_s(self, rundir: RunDir) -> float | None:
        """CPU seconds the tree has used; None when nobody can say."""

    def roots(self) -> list[int]:
        """Pids of the trees that are watched."""


class LocalLauncher:
    """Holders on this machine, found again through their run folders."""

    def __init__(self, umask: int = -1) -> None:
        self._umask = umask  # of holders, tailers and so of workers; -1: the daemon's own
        self._spawned: dict[str, subprocess.Popen[bytes]] = {}
        self._watched: dict[str, int] = {}  # run id → pidfd
        self._tailers: dict[str, subprocess.Popen[bytes]] = {}

    def launch(self, rundir: RunDir, launch: dict[str, Any]) -> None:
        _refuse_links(rundir)
        durable.write_json(rundir.launch, launch)
        failpoint("spawn.written")
        command = [sys.executable, "-I", "-S", str(HOLDER), "--run-dir", str(rundir.path)]
        command += ["--attempt", str(launch["attempt"])]
        child = _spawn(command, rundir.holder_log, self._umask)
        failpoint("spawn.spawned")
        self._spawned[rundir.run_id] = child

    def is_starting(self, rundir: RunDir) -> bool:
        child = self._spawned.get(rundir.run_id)
        return child is not None and child.poll() is None

    def is_held(self, rundir: RunDir) -> bool:
        if rundir.run_id in self._watched:
            return True
        # Never probe the lock of a holder that is about to take it: it would find it taken and leave.
        if self.is_starting(rundir):
            return _holder_pid(rundir) == self._spawned[rundir.run_id].pid
        fd = self.fence(rundir)
        if fd is None:
            return True
        os.close(fd)
        return False

    def fence(self, rundir: RunDir) -> int | None:
        fd = os.open(rundir.owner_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def watch(self, rundir: RunDir, gone: Callable[[], None]) -> None:
        if rundir.run_id in self._watched:
            return
        pidfd = _pidfd(_holder_pid(rundir))
        if pidfd is None:
            return
        self._watched[rundir.run_id] = pidfd

        def ended() -> None:
            self.forget(rundir)
            gone()

        asyncio.get_running_loop().add_reader(pidfd, ended)

    def forget(self, rundir: RunDir) -> None:
        pidfd = self._watched.pop(rundir.run_id, None)
        if pidfd is not None:
            asyncio.get_running_loop().remove_reader(pidfd)
            os.close(pidfd)
        for children in (self._spawned, self._tailers):
            child = children.pop(rundir.run_id, None)
            if child is not None:
                child.poll()  # reap it

    def stop(self, rundir: RunDir) -> bool:
        return self._signal(rundir, signal.SIGTERM)

    def autopsy(self, rundir: RunDir) -> bool:
        return self._signal(rundir, signal.SIGUSR1)

    def kill_leftovers(self, rundir: RunDir, started: dict[str, Any]) -> bool:
        if started:
            _kill_exactly(started)
        for pid in _strays(rundir.run_id):
            procfs.send(pid, signal.SIGKILL)
        return not (started and _lives(started)) and not _strays(rundir.run_id)

    def tail(self, rundir: RunDir) -> None:
        running = self._tailers.get(rundir.run_id)
        if running is not None and running.poll() is None:
            return
        launch = durable.read_json(rundir.launch) or {}
        if launch.get("tailer_argv"):
            self._tailers[rundir.run_id] = _spawn(
                launch["tailer_argv"], rundir.tailer_log, self._umask, launch["tailer_env"]
            )

    def cpu_s(self, rundir: RunDir) -> float | None:
        started = durable.read_json(rundir.started)
        return procfs.tree_cpu_s(started["root_pid"]) if started and _lives(started) else None

    def roots(self) -> list[int]:
        return [pid for pidfd in self._watched.values() if (pid := procfs.pid_of(pidfd)) > 0]

    def _signal(self, rundir: RunDir, number: signal.Signals) -> bool:
        # Through a pidfd: a number alone may already belong to a stranger.
        pidfd = self._watched.get(rundir.run_id)
        if pidfd is None:
            return False
        try:
            signal.pidfd_send_signal(pidfd, number)
        except ProcessLookupError:
            pass
        return True


def _refuse_links(rundir: RunDir) -> None:
    # Nobody but us has written here yet, so a link was planted: holder, tailer and store would write where it leads.
    for path in (rundir.path, rundir.logs, *rundir.path.iterdir(), *rundir.logs.iterdir()):
        if path.is_symlink():
            raise MosaicError(f"{path} is a link, and a run writes only inside its folder. Submit it again.")


def _spawn(
    command: list[str], log_file: Path, umask: int, env: dict[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """A process of its own session that outlives the daemon."""
    # Not through a link: it would make us write elsewhere.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(log_file, flags, 0o600), "ab") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=env,
            cwd="/",
            start_new_session=True,
            umask=umask,
        )


def _holder_pid(rundir: RunDir) -> int | None:
    """The holder's pid from started.json: unlike the lock's text it is never an earlier attempt's."""
    launch, started = durable.read_json(rundir.launch), durable.read_json(rundir.started)
    if not launch or not started or launch.get("attempt") != started.get("attempt"):
        return None
    pid = started.get("holder_pid")
    return pid if isinstance(pid, int) else None


def _pidfd(pid: int | None) -> int | None:
    try:
        return os.pidfd_open(pid) if pid else None
    except OSError:
        return None


def _lives(started: dict[str, Any]) -> bool:
    is_same = procfs.is_same(started["root_pid"], started["root_start_ticks"])
    return is_same and bool(started["boot_id"] == procfs.boot_id())


def _strays(run_id: str) -> list[int]:
    """Processes whose environment names this run: how they are found where no namespace holds them."""
    # Not this process: a daemon that was started from a worker has the variable too.
    return [pid for pid in procfs.with_variable("MOSAIC_RUN_ID", run_id) if pid != os.getpid()]


def _kill_exactly(started: dict[str, Any]) -> None:
    """SIGKILL to the tree's root, if the pid still names the process that was started."""
    if not _lives(started):
        return
    pidfd = _pidfd(started["root_pid"])
    if pidfd is None:
        return
    try:
        # Checked again behind the pidfd: from here on the number cannot be given to another process.
        if _lives(started):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        pass
    finally:
        os.close(pidfd)
