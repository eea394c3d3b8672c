"""The platform's only reader of /proc/PID. Standard library only: the holder imports it.

Each function copes with a process that ends while it is read, with zombies, and with processes of other users.
"""

import os
import signal
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that MOSAIC uses."""

    state: str
    parent: int
    cpu_ticks: int  # of the process and of the children it has waited for
    start_ticks: int  # since boot; with the pid and the boot id this identifies a process uniquely

    @property
    def is_dead(self) -> bool:
        return self.state in "ZX"


def pids() -> "list[int]":
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def stat(pid: int) -> "Stat | None":
    """The process's stat fields; None if it does not exist. A zombie still has them: see `is_alive`."""
    # The name in parentheses may contain anything, even a parenthesis; the fields begin after the last one.
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if not fields:
        return None
    return Stat(fields[0].decode(), int(fields[1]), sum(map(int, fields[11:15])), int(fields[19]))


def is_alive(pid: int) -> bool:
    """Whether the process exists and is more than a zombie."""
    found = stat(pid)
    return found is not None and not found.is_dead


def is_same(pid: int, start_ticks: "int | None") -> bool:
    """Whether `pid` is alive and is the process that was started at `start_ticks`, not a later one with its number."""
    found = stat(pid)
    return found is not None and not found.is_dead and found.start_ticks == start_ticks


def start_ticks(pid: int) -> "int | None":
    found = stat(pid)
    return None if found is None else found.start_ticks


def boot_id() -> str:
    return _read("/proc/sys/kernel/random/boot_id").decode().strip()


def oom_kills() -> int:
    """How often the kernel ran out of memory and killed a process, since boot."""
    for line in _read("/proc/vmstat").splitlines():
        name, _, value = line.partition(b" ")
        if name == b"oom_kill":
            return int(value)
    return 0


def descendants(root: int) -> "list[int]":
    """Children, their children, and so on, zombies included; not `root` itself."""
    children: dict[int, list[int]] = {}
    for pid, found in _stats():
        children.setdefault(found.parent, []).append(pid)
    known = list(children.get(root, ()))
    for pid in known:
        known.extend(children.get(pid, ()))
    return known


def has_ancestor(pid: int, ancestors: "set[int]") -> bool:
    """Whether `pid`, or a process above it, is one of `ancestors`."""
    while pid > 1:
        if pid in ancestors:
            return True
        found = stat(pid)
        pid = found.parent if found else 0
    return False


def tree_cpu_s(root: int) -> float:
    """CPU seconds used so far by `root` and its descendants, dead and reaped children included."""
    found = [stat(pid) for pid in (root, *descendants(root))]
    return sum(one.cpu_ticks for one in found if one and not one.is_dead) / _TICKS_PER_S


def command_line(pid: int) -> "list[bytes]":
    """The program and its arguments; empty for a zombie, a kernel thread, or a process that we may not read."""
    return _read(f"/proc/{pid}/cmdline").removesuffix(b"\0").split(b"\0")


def environment(pid: int) -> "list[bytes]":
    """`NAME=value` of each variable that the process was started with, as far as we may read them."""
    return _read(f"/proc/{pid}/environ").split(b"\0")


def working_folder(pid: int) -> str:
    """The working folder of the process; empty if we may not read it."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def started_with(variables: "Mapping[str, str]", since_ticks: "int | None" = None) -> "list[int]":
    """Processes that were started with all these environment variables (as far as we may read theirs), and not
    before `since_ticks`."""
    wanted = {os.fsencode(f"{name}={value}") for name, value in variables.items()}
    if not wanted:
        return []
    found = ((pid, stat(pid)) for pid in pids() if wanted.issubset(environment(pid)))
    return [pid for pid, one in found if one and one.start_ticks >= (since_ticks or 0)]


def pid_of(pidfd: int) -> int:
    """The process behind a pidfd of ours; 0 or less when it is gone."""
    for line in _read(f"/proc/self/fdinfo/{pidfd}").splitlines():
        if line.startswith(b"Pid:"):
            return int(line.split()[1])
    return 0


def catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for this signal; without one the signal would kill it."""
    return number in _signal_set(pid, b"SigCgt")


def ignored_signals() -> "list[int]":
    """The signals that this process ignores, and that a program it executes would ignore too."""
    return _signal_set("self", b"SigIgn")


def send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # gone, or it became another user's


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def _signal_set(pid: "int | str", name: bytes) -> "list[int]":
    _, _, rest = _read(f"/proc/{pid}/status").partition(b"\n" + name + b":")
    mask = int(rest.split(None, 1)[0], 16) if rest else 0
    return [number for number in range(1, signal.NSIG) if mask & 1 << number - 1]


def _stats() -> "Iterator[tuple[int, Stat]]":
    for pid in pids():
        if found := stat(pid):
            yield pid, found


def _read(path: str) -> bytes:
    """The content of a file in /proc; empty if the process is gone, even while reading, or is another user's."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
