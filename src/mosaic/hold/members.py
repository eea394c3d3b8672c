"""Who belongs to the tree, seen from its root process: all of a pid namespace, or all descendants."""

import os
import signal

from mosaic.hold import kernel
from mosaic.model import procfs


class Namespace:
    """Everyone in this pid namespace. The caller is its pid 1."""

    def enter(self) -> None:
        kernel.mount_own_proc()

    def tie_to_holder(self) -> None:
        # The kernel itself then ends everyone with the holder, even if this process hangs or is stopped.
        kernel.die_with_parent()

    def tie_to_root(self) -> None:
        pass  # the kernel ends a namespace with its pid 1

    def pids(self) -> "list[int]":
        return [pid for pid in procfs.pids() if pid != os.getpid()]

    def signal(self, number: int) -> None:
        # One call under the kernel's lock: a process that forks at this moment cannot slip through.
        procfs.send(-1, number)


class Descendants:
    """Everyone below the caller, which is their subreaper: whoever loses its parent comes to the caller."""

    def enter(self) -> None:
        kernel.set_subreaper(True)

    def tie_to_holder(self) -> None:
        pass  # a subreaper that dies lets its orphans go; this one must live and kill them when the holder is gone

    def tie_to_root(self) -> None:
        kernel.die_with_parent()

    def pids(self) -> "list[int]":
        return procfs.descendants(os.getpid())

    def signal(self, number: int) -> None:
        for pid in self.pids():
            procfs.send(pid, number)


Members = Namespace | Descendants


def print_stacks(members: Members) -> None:
    """SIGUSR2 to everyone who catches it: faulthandler prints the Python stacks to stderr."""
    for pid in members.pids():
        if procfs.catches(pid, signal.SIGUSR2):
            procfs.send(pid, signal.SIGUSR2)
