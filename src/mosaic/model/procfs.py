"""What /proc knows of processes. Every reader copes with a process that ends while it is read."""

import os
import signal
from collections.abc import Iterator


def pids() -> "list[int]":
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def start_ticks(pid: int) -> int:
    """When it was started, in clock ticks since boot; with the pid and the boot id this names a process for good."""
    return int(_stat(pid)[19])


def boot_id() -> str:
    return _read("/proc/sys/kernel/random/boot_id").decode().strip()


def oom_kills() -> int:
    """How often the kernel ran out of memory and killed, since boot."""
    for line in _read("/proc/vmstat").splitlines():
        name, _, value = line.partition(b" ")
        if name == b"oom_kill":
            return int(value)
    return 0


def descendants(root: int) -> "list[int]":
    """Children, their children, and so on; not `root` itself."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(root, ()))
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def with_variable(name: str, value: str) -> "list[int]":
    """Processes that were started with this environment variable, as far as we may look."""
    wanted = f"{name}={value}".encode()
    return [pid for pid in pids() if wanted in _environ(pid)]


def catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for this signal; sending it to one that has not would kill it."""
    try:
        return number in _signal_set(pid, b"SigCgt")
    except OSError:
        return False


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
    mask = int(rest.split(None, 1)[0], 16)
    return [number for number in range(1, signal.NSIG) if mask & 1 << number - 1]


def _parents() -> "Iterator[tuple[int, int]]":
    for pid in pids():
        try:
            yield pid, int(_stat(pid)[1])
        except OSError:
            continue


def _stat(pid: int) -> "list[bytes]":
    # The name in parentheses may hold anything, a parenthesis too; the fields begin after the last one.
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _environ(pid: int) -> "list[bytes]":
    try:
        return _read(f"/proc/{pid}/environ").split(b"\0")
    except OSError:
        return []


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
