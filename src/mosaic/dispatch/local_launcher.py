"""Runs the holders on this machine: pidfds, locks and /proc show what lives."""

import asyncio
import contextlib
import fcntl
import logging
import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mosaic.dispatch.launcher import Ref, Sight, Stage, Stop
from mosaic.model import durable, procfs, shortage
from mosaic.model.end_proof import (
    is_elsewhere,
    is_of_another_root,
    lives_here,
    own_launch,
    own_start,
    run_folder_of,
    tree_lives,
)
from mosaic.model.errors import MosaicError
from mosaic.model.failpoints import failpoint
from mosaic.model.file_locks import lock_holders
from mosaic.model.inputs import is_input_link, link_inputs
from mosaic.model.rundir import RunDir

log = logging.getLogger(__name__)
HOLDER = Path(__file__).parents[1] / "hold" / "__main__.py"
_SIGNALS = {Stop.TERM: signal.SIGTERM, Stop.AUTOPSY: signal.SIGUSR1}


class LocalLauncher:
    """Holders on this machine; a restarted daemon finds them again through their run folders.

    Its methods are those of `Launcher`, and some for what only this machine can tell.
    """

    def __init__(self, umask: int = -1, nofile: int = -1) -> None:
        self._umask = umask  # of holders, tailers and therefore workers; -1: the daemon's own
        self._nofile = nofile  # their soft limit of open files; -1: the daemon's own
        self._spawned: dict[str, subprocess.Popen[bytes]] = {}
        self._watched: dict[str, int] = {}  # run id → pidfd of its holder
        self._roots: dict[str, int] = {}  # run id → pidfd of the root of its tree
        self._tailers: dict[str, subprocess.Popen[bytes]] = {}

    def submit(self, ref: Ref, launch: dict[str, Any]) -> str:
        write_launch(ref.rundir, launch)
        return ""

    def begin(self, ref: Ref) -> str:
        rundir = ref.rundir
        command = [sys.executable, "-I", "-S", str(HOLDER), "--run-dir", str(rundir.path)]
        command += ["--attempt", str(ref.attempt)]
        command += ["--nofile", str(self._nofile)] if self._nofile >= 0 else []
        child = _spawn(command, rundir.holder_log, self._umask)
        failpoint("spawn.spawned")
        self._spawned[rundir.run_id] = child
        return ""

    def room(self) -> str | None:
        return ""  # schedule.py decides what fits on this machine

    def is_pending(self, ref: Ref) -> bool:
        return False

    def find(self, ref: Ref) -> str | None:
        return None  # its files tell everything

    def look(self, ref: Ref) -> Sight:
        if self.is_held(ref.rundir):
            return Sight(Stage.RUNNING)
        if self.is_starting(ref.rundir):
            return Sight(Stage.STARTING)
        return Sight(Stage.ABSENT, self._shortage(ref.rundir))

    def is_starting(self, rundir: RunDir) -> bool:
        """Whether a holder that this daemon spawned has not exited."""
        child = self._spawned.get(rundir.run_id)
        return child is not None and child.poll() is None

    def _shortage(self, rundir: RunDir) -> str:
        """What the holder that this daemon spawned lacked to start its worker; empty if it lacked nothing."""
        child = self._spawned.get(rundir.run_id)
        lacked_something = child is not None and child.poll() == shortage.EXIT_CODE
        return "free descriptors, processes or memory: its holder could not start it" if lacked_something else ""

    def is_held(self, rundir: RunDir) -> bool:
        """Whether a live holder owns the run."""
        if rundir.run_id in self._watched:
            return True
        # Never probe the lock of a holder that is about to take it: the holder would find it taken and exit.
        if self.is_starting(rundir):
            return _holder_pid(rundir) == self._spawned[rundir.run_id].pid
        fd = take_lock(rundir)
        if fd is None:
            return True
        os.close(fd)
        return False

    def fence(self, ref: Ref) -> int | None:
        return take_lock(ref.rundir)

    def watch(self, ref: Ref, wake: Callable[[], None]) -> None:
        rundir = ref.rundir
        if rundir.run_id in self._watched:
            self._keep_root(rundir)
            return
        pidfd = _pidfd(_holder_pid(rundir))
        if pidfd is None:
            return
        # Checked after opening the pidfd: while its lock is held the holder lives, so the number is still its own.
        if not _is_locked(rundir.owner_lock):
            os.close(pidfd)
            return
        self._watched[rundir.run_id] = pidfd
        self._keep_root(rundir)

        def ended() -> None:
            self._unwatch(rundir)
            wake()

        asyncio.get_running_loop().add_reader(pidfd, ended)

    def _keep_root(self, rundir: RunDir) -> None:
        """Keep hold of the tree's root: started.json may be replaced later where a worker can write it."""
        if rundir.run_id in self._roots:
            return
        started = own_start(durable.read_json(rundir.started) or {}, own_launch(rundir))
        pidfd = _tree_root(started)
        if pidfd is not None:
            self._roots[rundir.run_id] = pidfd

    def lives(self, ref: Ref, started: Mapping[str, Any]) -> bool:
        rundir = ref.rundir
        root = self._roots.get(rundir.run_id)
        return lives_here(started, rundir) or (root is not None and not _has_exited(root))

    def forget(self, ref: Ref) -> None:
        rundir = ref.rundir
        self._unwatch(rundir)
        holder = self._spawned.pop(rundir.run_id, None)
        if holder is not None:
            holder.poll()  # reap it
        root = self._roots.pop(rundir.run_id, None)
        if root is not None:
            os.close(root)

    def _unwatch(self, rundir: RunDir) -> None:
        pidfd = self._watched.pop(rundir.run_id, None)
        if pidfd is not None:
            asyncio.get_running_loop().remove_reader(pidfd)
            os.close(pidfd)
        tailer = self._tailers.pop(rundir.run_id, None)
        if tailer is not None:
            tailer.poll()  # reap it

    def stop(self, ref: Ref, how: Stop = Stop.TERM) -> bool:
        return self._signal(ref.rundir, _SIGNALS[how])

    def settle(self, ref: Ref, started: dict[str, Any]) -> bool:
        rundir = ref.rundir
        if started and is_elsewhere(started, rundir):
            started = {}  # a copied root: the process belongs to the original
        if started:
            _kill_exactly(started)
        if rundir.run_id in self._roots:
            _send(self._roots[rundir.run_id], signal.SIGKILL)
        for pid in _strays(rundir, started):
            procfs.send(pid, signal.SIGKILL)
        return not self.lives(ref, started) and not _strays(rundir, started)

    def keep_log(self, ref: Ref) -> None:
        pass  # its holder writes it there

    def drain(self, ref: Ref) -> None:
        self.tail(ref.rundir)

    def tail(self, rundir: RunDir) -> None:
        """Start a tailer for a run that has none."""
        if not rundir.is_in_place:
            return  # there is nothing to read, or its log would be written elsewhere
        running = self._tailers.get(rundir.run_id)
        if running is not None and running.poll() is None:
            return
        launch = durable.read_json(rundir.launch) or {}
        # Of a run on another machine that is over: its own tailer's command is one for that machine.
        command = launch.get("local_tailer_argv") or launch.get("tailer_argv")
        if command:
            argv = _relocated(command, rundir)
            self._tailers[rundir.run_id] = _spawn(argv, rundir.tailer_log, self._umask, launch["tailer_env"])
            self._limit(self._tailers[rundir.run_id].pid)

    def is_untailed(self, rundir: RunDir) -> bool:
        """Whether the run has a live holder and no tailer: the tailer exits when the run's folder is out of sight."""
        # If the holder is just restarting its tailer, ours waits for the lock, and finds nothing left to do.
        return (
            rundir.has_control and rundir.started.exists() and self.is_held(rundir) and not _is_locked(rundir.tail_lock)
        )

    def cpu_s(self, ref: Ref) -> float | None:
        started = durable.read_json(ref.rundir.started)
        return procfs.tree_cpu_s(started["root_pid"]) if started and tree_lives(started) else None

    def roots(self) -> list[int]:
        """Pids of the holders that are watched."""
        return [pid for pidfd in self._watched.values() if (pid := procfs.pid_of(pidfd)) > 0]

    def _limit(self, pid: int) -> None:
        """Give a tailer the limit of open files that the user has: it may start the next daemon."""
        if self._nofile >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
                resource.prlimit(pid, resource.RLIMIT_NOFILE, (self._nofile, hard))

    def _signal(self, rundir: RunDir, number: signal.Signals) -> bool:
        # Through a pidfd: the number alone may already belong to another process.
        pidfd = self._watched.get(rundir.run_id)
        if pidfd is None:
            return False
        _send(pidfd, number)
        return True


def take_lock(rundir: RunDir) -> int | None:
    """The owner's lock of a run; None when it is held. Closing it releases the lock."""
    fd = durable.open_lock(rundir.owner_lock)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def write_launch(rundir: RunDir, launch: dict[str, Any]) -> None:
    """Write launch.json into a folder in which nothing leads elsewhere."""
    _refuse_links(rundir, str(launch.get("inputs") or ""))
    if launch.get("inputs"):
        link_inputs(rundir.path, launch["inputs"])
    durable.write_json(rundir.launch, launch)
    failpoint("spawn.written")


def _refuse_links(rundir: RunDir, inputs: str) -> None:
    # Only this daemon has written here so far, so another program planted the link: all writes would follow it.
    planted = () if rundir.has_control else (rundir.control,)
    for path in (
        *planted,
        rundir.path,
        rundir.logs,
        *rundir.path.iterdir(),
        *rundir.logs.iterdir(),
        *rundir.control.iterdir(),
    ):
        if path.is_symlink() and not is_input_link(path, inputs):
            raise MosaicError(
                f"{path} is a symbolic link, and a run writes only inside its folder. Submit the run again."
            )


def _spawn(
    command: list[str], log_file: Path, umask: int, env: dict[str, str] | None = None
) -> "subprocess.Popen[bytes]":
    """Start a process in a new session, so that it outlives the daemon."""
    with open(durable.open_log(log_file), "ab") as out:
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


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return not isinstance(error, FileNotFoundError)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _holder_pid(rundir: RunDir) -> int | None:
    """The holder's pid: the kernel knows who has the lock, so a damaged started.json hides no live holder."""
    pids = (pid for pid in lock_holders(rundir.owner_lock) if pid > 0 and _is_holder_of(pid, rundir))
    return next(pids, None) or _recorded_holder(rundir)


def _is_holder_of(pid: int, rundir: RunDir) -> bool:
    """Whether its command line is that of a holder of this run: at owner.lock may lie a second name of another lock."""
    folder = run_folder_of(pid)
    return os.path.basename(folder) == rundir.run_id and not is_of_another_root(folder, rundir)


def _recorded_holder(rundir: RunDir) -> int | None:
    """The holder's pid from started.json: unlike the text in the lock, it is never that of an earlier attempt."""
    launch, started = durable.read_json(rundir.launch), durable.read_json(rundir.started)
    if not launch or not started or launch.get("attempt") != started.get("attempt"):
        return None
    pid = own_start(started, launch).get("holder_pid")
    return pid if isinstance(pid, int) else None


def _pidfd(pid: int | None) -> int | None:
    try:
        return os.pidfd_open(pid) if pid else None
    except OSError:
        return None


def _send(pidfd: int, number: signal.Signals) -> None:
    try:
        signal.pidfd_send_signal(pidfd, number)
    except ProcessLookupError:
        pass


def _has_exited(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


def _strays(rundir: RunDir, started: Mapping[str, Any]) -> list[int]:
    """Processes whose environment names this run: how they are found where no namespace holds them.

    Not those from before its tree, which is as old as `started` says.
    """
    ticks = started.get("root_start_ticks") if started.get("boot_id") == procfs.boot_id() else None
    named = procfs.started_with({"MOSAIC_RUN_ID": rundir.run_id}, ticks if isinstance(ticks, int) else None)
    # Not this process: a daemon that was started from a worker has the variables too.
    named = [pid for pid in named if pid != os.getpid()]
    return [pid for pid in named if (folder := _run_folder(pid)) and not is_of_another_root(folder, rundir)]


def _run_folder(pid: int) -> str:
    prefix = b"MOSAIC_RUN_DIR="
    return next((os.fsdecode(one[len(prefix) :]) for one in procfs.environment(pid) if one.startswith(prefix)), "")


def _relocated(tailer_argv: list[str], rundir: RunDir) -> list[str]:
    """The tailer's command for where the root is now; launch.json names the place where the run was started."""
    here = {"--run-dir": str(rundir.path), "--root": str(rundir.path.parents[2])}
    return [here.get(before, word) for before, word in zip(["", *tailer_argv], tailer_argv, strict=False)]


def _kill_exactly(started: dict[str, Any]) -> None:
    """Send SIGKILL to the tree's root, if its pid still belongs to the process that was started."""
    pidfd = _tree_root(started)
    if pidfd is not None:
        _send(pidfd, signal.SIGKILL)
        os.close(pidfd)


def _tree_root(started: Mapping[str, Any]) -> int | None:
    """A pidfd of the tree's root; None if it is gone, even if another process has its pid."""
    pidfd = _pidfd(started["root_pid"]) if tree_lives(started) else None
    # Checked again after opening the pidfd: from here on the number cannot pass to another process.
    if pidfd is not None and not tree_lives(started):
        os.close(pidfd)
        return None
    return pidfd
