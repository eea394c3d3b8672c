"""A run's process tree, from the holder's side: held by the strongest means available, ended with proof.

holder ─fork─▶ middle ─unshare, fork─▶ root (init.py) ─fork, exec─▶ worker
                 └ exits, so that the root becomes a child of the holder, which can then wait for it
"""

import json
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

from mosaic.hold import init, kernel, spawn
from mosaic.hold.members import Descendants, Namespace
from mosaic.hold.spawn import Command
from mosaic.model import procfs
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import RunDir
from mosaic.model.shortage import is_shortage

_NEW_PIDS = kernel.CLONE_NEWPID | kernel.CLONE_NEWNS


class Means(NamedTuple):
    """One way to hold a tree."""

    held_by: str
    flags: int  # what the middle process unshares
    proof: str


NAMESPACE = Means("pid namespace", _NEW_PIDS, "the kernel ended every process of the pid namespace")
USER_NAMESPACE = NAMESPACE._replace(flags=_NEW_PIDS | kernel.CLONE_NEWUSER)
SUBREAPER = Means("subreaper (best effort)", 0, "the subreaper has no child left and no process names the run")


class CannotHold(MosaicError):
    """This machine does not let us hold a tree by these means."""


def strongest_first(hold: str, uid: int) -> "list[Means]":
    """The means to try. Root needs no user namespace, in which other users' files would appear to have no owner."""
    if hold == "subreaper":
        return [SUBREAPER]
    return [NAMESPACE, USER_NAMESPACE, SUBREAPER] if uid == 0 else [USER_NAMESPACE, SUBREAPER]


class Tree:
    """A root process that waits for GO. A request to a tree that is already gone is not an error."""

    def __init__(self, means: Means, hiding: str, root_pid: int, requests: int, reports: int) -> None:
        self.means = means
        self.held_by = f"{means.held_by}, {hiding}"
        self.root_pid = root_pid
        self.reports = reports
        self._requests = requests
        self._text = b""
        self._start_ticks = procfs.start_ticks(root_pid)
        self.is_silent = False  # the root process closed its reports: it is exiting
        self.root_status: int | None = None  # once it is reaped
        self.cpu_s = 0.0
        self.max_rss_kb = 0
        os.set_blocking(reports, False)

    def request(self, what: bytes) -> None:
        try:
            os.write(self._requests, what)
        except BrokenPipeError:
            pass

    def force(self) -> None:
        """Kill the tree from outside, for a root process that does not react."""
        if self.root_status is not None:
            return
        if self.means is SUBREAPER:
            # Killing the subreaper itself would lose its orphans.
            for pid in procfs.descendants(self.root_pid):
                procfs.send(pid, signal.SIGKILL)
            procfs.send(self.root_pid, signal.SIGCONT)
        else:
            procfs.send(self.root_pid, signal.SIGKILL)

    def read_reports(self) -> "list[dict[str, Any]]":
        """What the root process reported since the last call."""
        try:
            while not self.is_silent:
                data = os.read(self.reports, 65536)
                self._text += data
                self.is_silent = not data
        except BlockingIOError:
            pass
        *lines, self._text = self._text.split(b"\n")
        return [json.loads(line) for line in lines]

    def reap_root(self) -> bool:
        """Whether the root process is gone."""
        if self.root_status is None:
            pid, status, usage = os.wait4(self.root_pid, os.WNOHANG)
            if pid:
                self.root_status = status
                self.cpu_s = usage.ru_utime + usage.ru_stime
                self.max_rss_kb = usage.ru_maxrss
        return self.root_status is not None

    def kill_strays(self, env: "Mapping[str, str]", spared: "set[int]") -> bool:
        """Kill processes outside the tree that have the worker's `env`; True when there was one.

        A pid namespace has none. Under a subreaper they exist when the root process was killed and lost its orphans.
        """
        if self.means is not SUBREAPER:
            return False
        strays = set(procfs.started_with(_marks_of(env), self._start_ticks)) - spared
        for pid in strays:
            procfs.send(pid, signal.SIGKILL)
        return bool(strays)


def _marks_of(env: "Mapping[str, str]") -> "dict[str, str]":
    """What only processes of this run have. The folder too: the run of a copied root has the same id."""
    return {name: env[name] for name in ("MOSAIC_RUN_ID", "MOSAIC_RUN_DIR") if name in env}


def start_tree(
    means: "list[Means]", run: RunDir, worker: Command, sweep_s: float, say: "Callable[[str], None]"
) -> Tree:
    """A tree held by the first means that works here; CannotHold when none does."""
    # The root process is a grandchild: as its nearest subreaper we become its parent when the middle process exits.
    kernel.set_subreaper(True)
    try:
        for one in means:
            try:
                return _start(one, run, worker, sweep_s)
            except CannotHold as error:
                say(f"Cannot hold the tree by a {one.held_by}: {error}")
    finally:
        # From now on, orphans of the tailer (such as a daemon that it started) must not become our children.
        kernel.set_subreaper(False)
    raise CannotHold("no means to hold the tree works on this machine")


def _start(means: Means, run: RunDir, worker: Command, sweep_s: float) -> Tree:
    requests_to_read, requests = os.pipe()
    reports, reports_to_write = os.pipe()
    # Signals wait until the child has its own handlers: ours would write its signals into our own wake-up pipe.
    with spawn.BlockedSignals():
        middle = os.fork()
        if middle == 0:
            _run_middle(means, run, worker, sweep_s, requests_to_read, reports_to_write)
    os.close(requests_to_read)
    os.close(reports_to_write)
    os.waitpid(middle, 0)
    root_pid, hiding, refusal, code = _read_setup(reports)
    if refusal is None:
        return Tree(means, hiding, root_pid, requests, reports)
    os.close(requests)
    os.close(reports)
    if root_pid:
        os.waitpid(root_pid, 0)
    if is_shortage(code):
        # Weaker means would need a process just the same.
        raise OSError(code, refusal)
    raise CannotHold(refusal)


def _read_setup(reports: int) -> "tuple[int, str, str | None, int]":
    """The root's pid (0: none), what it hides, why it cannot be used (None when it is ready), and the errno of that."""
    text = b""
    setup: dict[str, Any] = {}
    # A refusal ends both processes, and with them the reports.
    while not {"root", "ready"} <= setup.keys() and (data := os.read(reports, 4096)):
        text += data
        for line in text.split(b"\n")[:-1]:
            setup |= json.loads(line)
    refusal = None if "ready" in setup else setup.get("refused", "the root process died during its setup")
    return setup.get("root", 0), setup.get("ready", ""), refusal, setup.get("errno", 0)


def _run_middle(means: Means, run: RunDir, worker: Command, sweep_s: float, requests: int, reports: int) -> NoReturn:
    try:
        _close_all_but({0, 1, 2, requests, reports, *worker.streams})
        _unshare(means.flags)
        root = os.fork()
        if root == 0:
            _run_root(means, run, worker, sweep_s, requests, reports)
        _report(reports, root=root)
    except OSError as error:
        _report(reports, refused=str(error.strerror or error), errno=error.errno)
    finally:
        os._exit(0)


def _run_root(means: Means, run: RunDir, worker: Command, sweep_s: float, requests: int, reports: int) -> NoReturn:
    try:
        kernel.set_name("mosaic-init")
        _close_holder_log()
        members = Namespace(run) if means.flags else Descendants()
        me = init.Init(requests, reports, members, sweep_s)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        try:
            hiding = members.enter()
        except OSError as error:
            me.report(refused=error.strerror)
            os._exit(0)
        me.report(ready=hiding)
        me.serve(worker)
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the edge of the process
        import traceback

        _report(reports, failure=traceback.format_exc())
    finally:
        os._exit(1)


def _close_holder_log() -> None:
    # It is a control file, and a worker that is root can open what its root process has open.
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


def _unshare(flags: int) -> None:
    uid, gid = os.getuid(), os.getgid()
    if flags:
        kernel.unshare(flags)
    if flags & kernel.CLONE_NEWUSER:
        kernel.map_current_user(uid, gid)


def _close_all_but(kept: "set[int]") -> None:
    # Above all the holder's lock: a copy of it here would look like a live holder.
    for fd in {int(name) for name in os.listdir("/proc/self/fd")} - kept:
        try:
            os.close(fd)
        except OSError:
            pass  # the descriptor of the listing itself


def _report(reports: int, **what: object) -> None:
    os.write(reports, json.dumps(what).encode() + b"\n")
