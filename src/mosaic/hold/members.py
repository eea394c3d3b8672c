"""The members of the tree, as its root process sees them: a whole pid namespace, or all descendants."""

import os
import signal

from mosaic.hold import hiding, kernel
from mosaic.model import procfs
from mosaic.model.held import VISIBLE
from mosaic.model.rundir import RunDir


class Namespace:
    """All processes in this pid namespace. The caller is its pid 1."""

    def __init__(self, run: RunDir) -> None:
        self._run = run

    def enter(self) -> str:
        """Returns whether the control files are hidden, in words."""
        kernel.mount_own_proc()
        return hiding.hide(self._run)

    def tie_to_holder(self) -> None:
        # The kernel itself then kills all of them with the holder, even if this process hangs or is stopped.
        kernel.die_with_parent()

    def tie_to_root(self) -> None:
        pass  # the kernel ends a namespace with its pid 1

    def pids(self) -> "list[int]":
        return [pid for pid in procfs.pids() if pid != os.getpid()]

    def signal(self, number: int) -> None:
        # One call under the kernel's lock: a process that forks at this moment cannot be missed.
        procfs.send(-1, number)


class Descendants:
    """All descendants of the caller, which is their subreaper: a process that loses its parent becomes its child."""

    def enter(self) -> str:
        kernel.set_subreaper(True)
        return VISIBLE

    def tie_to_holder(self) -> None:
        pass  # a dead subreaper loses its orphans; this one must stay alive and kill them when the holder is gone

    def tie_to_root(self) -> None:
        kernel.die_with_parent()

    def pids(self) -> "list[int]":
        return procfs.descendants(os.getpid())

    def signal(self, number: int) -> None:
        for pid in self.pids():
            procfs.send(pid, number)


Members = Namespace | Descendants


def print_stacks(members: Members) -> None:
    """Send SIGUSR2 to every process that catches it: faulthandler prints its Python stacks to stderr."""
    for pid in members.pids():
        if procfs.catches(pid, signal.SIGUSR2):
            procfs.send(pid, signal.SIGUSR2)
