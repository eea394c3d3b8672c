"""The tree of a run's processes, from the holder's side: started by the strongest means present, ended with proof.

holder ─fork─▶ middle ─unshare, fork─▶ root (init.py) ─fork, exec─▶ worker
                 └ leaves, so that the root becomes the holder's own child, which the holder can wait for
"""

import json
import os
import signal
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from mosaic.hold import init, kernel, spawn
from mosaic.hold.members import Descendants, Namespace
from mosaic.hold.spawn import Command
from mosaic.model import procfs
from mosaic.model.errors import MosaicError

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
    """The means to try. Root does without a user namespace, in which other users' files would belong to nobody."""
    if hold == "subreaper":
        return [SUBREAPER]
    return [NAMESPACE, USER_NAMESPACE, SUBREAPER] if uid == 0 else [USER_NAMESPACE, SUBREAPER]


class Tree:
    """A root process that waits for GO. Wishes to a tree that is already gone are not errors."""

    def __init__(self, means: Means, root_pid: int, wishes: int, reports: int) -> None:
        self.means = means
        self.root_pid = root_pid
        self.reports = reports
        self._wishes = wishes
        self._text = b""
        self.is_silent = False  # the root process closed its reports: it is ending
        self.root_status: int | None = None  # once it is reaped
        self.cpu_s = 0.0
        self.max_rss_kb = 0
        os.set_blocking(reports, False)

    def wish(self, what: bytes) -> None:
        try:
            os.write(self._wishes, what)
        except BrokenPipeError:
            pass

    def force(self) -> None:
        """For a root process that does not obey: do its killing from outside."""
        if self.root_status is not None:
            return
        if self.means is SUBREAPER:
            # Killing the subreaper itself would let its orphans go.
            for pid in procfs.descendants(self.root_pid):
                procfs.send(pid, signal.SIGKILL)
            procfs.send(self.root_pid, signal.SIGCONT)
        else:
            procfs.send(self.root_pid, signal.SIGKILL)

    def news(self) -> "list[dict[str, Any]]":
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

    def kill_strays(self, run_id: str, spared: "set[int]") -> bool:
        """Kill processes that carry the run's name outside the tree; True when there was one.

        A pid namespace has none. Under a subreaper somebody may have killed the root process and freed its orphans.
        """
        if self.means is not SUBREAPER:
            return False
        strays = set(procfs.with_variable("MOSAIC_RUN_ID", run_id)) - spared
        for pid in strays:
            procfs.send(pid, signal.SIGKILL)
        return bool(strays)


def start_tree(means: "list[Means]", worker: Command, sweep_s: float, say: "Callable[[str], None]") -> Tree:
    """A tree held by the first means that works here; CannotHold when none does."""
    # The root process is a grandchild: being its nearest subreaper makes it our child when the middle one leaves.
    kernel.set_subreaper(True)
    try:
        for one in means:
            try:
                return _start(one, worker, sweep_s)
            except CannotHold as error:
                say(f"Cannot hold the tree by a {one.held_by}: {error}")
    finally:
        # From now on orphans of the tailer (a daemon it started, say) are none of ours.
        kernel.set_subreaper(False)
    raise CannotHold("no means to hold the tree works on this machine")


def _start(means: Means, worker: Command, sweep_s: float) -> Tree:
    wishes_to_read, wishes = os.pipe()
    reports, reports_to_write = os.pipe()
    # Signals wait until the child has its own handlers: ours would write its signals into our own wake-up pipe.
    with spawn.BlockedSignals():
        middle = os.fork()
        if middle == 0:
            _be_middle(means, worker, sweep_s, wishes_to_read, reports_to_write)
    os.close(wishes_to_read)
    os.close(reports_to_write)
    os.waitpid(middle, 0)
    root_pid, refusal = _first_words(reports)
    if refusal is None:
        return Tree(means, root_pid, wishes, reports)
    os.close(wishes)
    os.close(reports)
    if root_pid:
        os.waitpid(root_pid, 0)
    raise CannotHold(refusal)


def _first_words(reports: int) -> "tuple[int, str | None]":
    """The root's pid (0: there is none) and None, or why it does not work."""
    text = b""
    words: dict[str, Any] = {}
    # A refusal ends both processes, and with them the text.
    while not {"root", "ready"} <= words.keys() and (data := os.read(reports, 4096)):
        text += data
        for line in text.split(b"\n")[:-1]:
            words |= json.loads(line)
    refusal = None if "ready" in words else words.get("refused", "the root process died while it was set up")
    return words.get("root", 0), refusal


def _be_middle(means: Means, worker: Command, sweep_s: float, wishes: int, reports: int) -> NoReturn:
    try:
        _close_all_but({0, 1, 2, wishes, reports, worker.stdout, worker.stderr})
        _unshare(means.flags)
        root = os.fork()
        if root == 0:
            _be_root(means, worker, sweep_s, wishes, reports)
        _tell(reports, root=root)
    except OSError as error:
        _tell(reports, refused=str(error.strerror or error))
    finally:
        os._exit(0)


def _be_root(means: Means, worker: Command, sweep_s: float, wishes: int, reports: int) -> NoReturn:
    try:
        kernel.set_name("mosaic-init")
        members = Namespace() if means.flags else Descendants()
        me = init.Init(wishes, reports, members, sweep_s)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        try:
            members.enter()
        except OSError as error:
            me.report(refused=error.strerror)
            os._exit(0)
        me.report(ready=True)
        me.serve(worker)
        os._exit(0)
    except BaseException:
        import traceback

        os.write(2, f"The root process failed.\n{traceback.format_exc()}".encode())
    finally:
        os._exit(1)


def _unshare(flags: int) -> None:
    uid, gid = os.getuid(), os.getgid()
    if flags:
        kernel.unshare(flags)
    if flags & kernel.CLONE_NEWUSER:
        kernel.map_current_user(uid, gid)


def _close_all_but(kept: "set[int]") -> None:
    # The holder's lock above all: a copy of it here would look like a living holder.
    for fd in {int(name) for name in os.listdir("/proc/self/fd")} - kept:
        try:
            os.close(fd)
        except OSError:
            pass  # the listing's own


def _tell(reports: int, **what: object) -> None:
    os.write(reports, json.dumps(what).encode() + b"\n")
