"""Questions about processes, answered from /proc."""

import os
from collections.abc import Iterator
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def start_ticks(pid: int) -> int | None:
    """When `pid` was started, in clock ticks since boot: with the pid and the boot id it names one process for ever."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def tree_cpu_s(root_pid: int) -> float:
    """CPU seconds used so far by the tree below `root_pid`, dead and reaped children included."""
    total = 0
    for pid in tree(root_pid):
        fields = _stat(pid)
        if fields:
            total += sum(int(ticks) for ticks in fields[11:15])
    return total / TICKS


def tree(root_pid: int) -> Iterator[int]:
    """`root_pid` and all its descendants. Inside a pid namespace this is everything: orphans return to its init."""
    children: dict[int, list[int]] = {}
    for pid in _all_pids():
        fields = _stat(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    pending = [root_pid]
    while pending:
        pid = pending.pop()
        yield pid
        pending.extend(children.get(pid, ()))


def carrying(run_id: str) -> list[int]:
    """Processes whose environment names this run: how strays are found where no namespace holds them."""
    mark = f"MOSAIC_RUN_ID={run_id}".encode()
    return [pid for pid in _all_pids() if pid != os.getpid() and mark in _environ(pid).split(b"\0")]


def _all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; empty when the process is gone or only a zombie is left."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    fields = text.rpartition(")")[2].split()
    return [] if fields[0] in "ZX" else fields
