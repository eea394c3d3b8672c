"""The CPUs and the memory of this machine that runs may request."""

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([mgt])(?:i?b)?", re.I)
_MB_PER = {"m": 1, "g": 1024, "t": 1024 * 1024}
MAX_CPUS = 4096.0
MAX_MEMORY_MB = 64 * 1024 * 1024


@dataclass(frozen=True)
class Machine:
    """What all runs together may request."""

    cpus: float
    memory_mb: int

    @property
    def max_runs(self) -> int:
        """How many runs may be live at once unless the user says otherwise.

        CPUs and memory are the real limits; this one is for runs that request almost nothing, because each still
        has a holder and a tailer.
        """
        return max(32, math.ceil(4 * self.cpus))


ANY_MACHINE = Machine(MAX_CPUS, MAX_MEMORY_MB)  # for runs elsewhere: their cluster knows what it has


def detect(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> Machine:
    """What this process may use: its CPU affinity, the machine's memory, and less where a cgroup allows less."""
    quotas, limits = _cgroup_cpus(proc, cgroups), _cgroup_memory_mb(proc, cgroups)
    cpus = min([float(len(os.sched_getaffinity(0))), *quotas])
    # At least one CPU: even under a quota of half a CPU one run must be able to start.
    return Machine(max(1.0, round(cpus, 2)), min([_memory_mb(proc), *limits]))


def parse_cpus(text: str) -> float:
    """A number of CPUs, fractions allowed; ValueError with a message for the user."""
    if not re.fullmatch(r"\d+(\.\d+)?", text.strip()) or float(text) > MAX_CPUS:
        raise ValueError(f"'{text}' is not a valid number of CPUs, such as 4 or 0.5")
    return float(text)


def parse_memory(text: str) -> int:
    """An amount of memory in MB, from 4G, 512M or 1.5G; ValueError with a message for the user."""
    match = _MEMORY.fullmatch(text.strip())
    memory_mb = round(float(match[1]) * _MB_PER[match[2].lower()]) if match else -1
    if not 0 <= memory_mb <= MAX_MEMORY_MB:
        raise ValueError(f"'{text}' is not a valid amount of memory, such as 512M or 4G")
    return memory_mb


def format_cpus(cpus: float) -> str:
    return f"{cpus:g} CPU{'' if cpus == 1 else 's'}"


def format_memory(memory_mb: float) -> str:
    if memory_mb < 1024:
        return f"{memory_mb:.0f} MB"
    return f"{memory_mb / 1024:.1f}".removesuffix(".0") + " GB"


def _memory_mb(proc: Path) -> int:
    for line in _lines(proc / "meminfo"):
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) // 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1 << 20)


def _cgroup_cpus(proc: Path, cgroups: Path) -> Iterator[float]:
    for folder in _folders("", proc, cgroups):
        quota, period = _numbers(folder / "cpu.max")
        if quota > 0 and period > 0:
            yield quota / period
    for folder in _folders("cpu", proc, cgroups):
        quota, period = _numbers(folder / "cpu.cfs_quota_us")[0], _numbers(folder / "cpu.cfs_period_us")[0]
        if quota > 0 and period > 0:
            yield quota / period


def _cgroup_memory_mb(proc: Path, cgroups: Path) -> Iterator[int]:
    names = {"": "memory.max", "memory": "memory.limit_in_bytes"}
    for controller, name in names.items():
        for folder in _folders(controller, proc, cgroups):
            limit = _numbers(folder / name)[0]
            if limit > 0:
                yield int(limit) >> 20


def _folders(controller: str, proc: Path, cgroups: Path) -> Iterator[Path]:
    """The cgroup of this process and all above it: of a version 1 controller, or of version 2 when it is empty."""
    for line in _lines(proc / "self" / "cgroup"):
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            inside = Path(path.lstrip("/"))
            # In a container the path may be the host's; missing folders are skipped.
            for place in (inside, *inside.parents):
                yield cgroups / controller / place
                if not controller:
                    yield cgroups / "unified" / place


def _numbers(path: Path) -> tuple[float, float]:
    """The first two numbers of a file; -1 for each that is missing or not a number (`max`)."""
    words = [*next(iter(_lines(path)), "").split(), "", ""]
    first, second = (float(word) if re.fullmatch(r"\d+", word) else -1.0 for word in words[:2])
    return first, second


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
