"""Decides which waiting runs may start now, and with which GPUs. No I/O."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mosaic.model.machine import Machine, format_cpus, format_memory
from mosaic.model.run import RunRecord

MOST_NAMED = 3  # of the runs that hold the CPUs
_ROUNDING = 1e-6  # sums of fractions of CPUs are not exact


@dataclass(frozen=True)
class Start:
    run_id: str
    gpus: tuple[str, ...]


@dataclass(frozen=True)
class Wait:
    run_id: str
    waiting_for: str


@dataclass
class Room:
    """The free resources. `holders` are the runs that use the others."""

    machine: Machine
    gpu_count: int  # of the machine, in use or not
    slots: int  # for runs that request CPUs or memory …
    driver_slots: int  # … and for the others
    gpus: list[str]
    holders: list[RunRecord]
    limits: Mapping[str, int] = field(default_factory=dict)  # of an experiment: how many of its runs at a time
    first_in_line: RunRecord | None = field(default=None)  # waits for CPUs or memory; no run after it gets any

    @property
    def cpus(self) -> float:
        return self.machine.cpus - sum(run.resources.cpus for run in self.holders)

    @property
    def memory_mb(self) -> int:
        return self.machine.memory_mb - sum(run.resources.memory_mb for run in self.holders)

    def lacks(self, run: RunRecord) -> str:
        """The CPUs or the memory that the run must wait for; empty when they are free."""
        asked = run.resources
        if asked.cpus > max(self.cpus, 0.0) + _ROUNDING:
            return f"{format_cpus(asked.cpus)}: {self._cpus_in_use()}"
        if asked.memory_mb > max(self.memory_mb, 0):
            requested, total = self.machine.memory_mb - self.memory_mb, self.machine.memory_mb
            use = f"{format_memory(requested)} of {format_memory(total)} are requested by other runs"
            return f"{format_memory(asked.memory_mb)} of memory: {use}"
        return ""

    def lacks_turn(self, run: RunRecord) -> str:
        """The other runs of its experiment that the run must wait for; empty when it need not."""
        name = run.membership.experiment
        limit = self.limits.get(name, 0)
        # A run without axes is not one of those that are limited: it may be the driver of a search for them.
        if not limit or not run.membership.axes:
            return ""
        started = sum(bool(each.membership.experiment == name and each.membership.axes) for each in self.holders)
        return _another(name, limit) if started >= limit else ""

    def _cpus_in_use(self) -> str:
        users = [f"{run.name} {run.run_id[:13]}" for run in self.holders if run.resources.cpus]
        more = f" and {len(users) - MOST_NAMED} more" if len(users) > MOST_NAMED else ""
        by = f" by {', '.join(users[:MOST_NAMED])}{more}" if users else ""
        return f"{self.machine.cpus - self.cpus:g} of {self.machine.cpus:g} in use{by}"


def decide(
    waiting: Sequence[RunRecord],
    running: Sequence[RunRecord],
    machine: Machine,
    max_runs: int,
    free_gpus: Sequence[str],
    gpu_count: int,
    limits: Mapping[str, int] | None = None,
) -> Iterator[Start | Wait]:
    """One decision per waiting run, oldest first.

    1. First come, first served: a run that waits for CPUs or memory delays every later run that requests any, even
       a small one; otherwise a large run might starve. It keeps the GPUs that it would get.
    2. A run that waits for GPUs delays later runs that request GPUs, and no others.
    3. Runs that request neither CPUs nor memory (drivers, which wait for other runs) are limited by `max_runs` only,
       and counted apart: drivers that had all the slots would wait for ever for the runs that they submit.
    4. A run that requests more than the whole machine, GPUs included (there was more when it was submitted), waits
       without delaying others.
    5. So does a run of an experiment of which as many runs as `limits` allows have started.
    """
    drivers = sum(not requests_any(run) for run in running)
    slots, driver_slots = max_runs - len(running) + drivers, max_runs - drivers
    room = Room(machine, gpu_count, slots, driver_slots, list(free_gpus), list(running), limits or {})
    for run in waiting:
        yield _decide(run, room, max_runs)


def _decide(run: RunRecord, room: Room, max_runs: int) -> Start | Wait:
    wanted = run.gpus.requested
    if (room.slots if requests_any(run) else room.driver_slots) <= 0:
        return Wait(run.run_id, f"a free slot: {max_runs} runs are live, the most that are allowed")
    if too_large := exceeds(run, room.machine, room.gpu_count):
        return Wait(run.run_id, f"{too_large}. Cancel it, or restart the daemon with more")
    if others := room.lacks_turn(run):
        return Wait(run.run_id, others)
    if run.gpus.mandatory and wanted > len(room.gpus):
        free, room.gpus = len(room.gpus), []
        return Wait(run.run_id, f"{_format_gpus(wanted)} ({free} free)")
    granted, left = room.gpus[:wanted], room.gpus[wanted:]
    lacking = room.lacks(run)
    if not lacking and room.first_in_line and requests_any(run):
        first = room.first_in_line
        lacking = f"its turn: {first.name} {first.run_id[:13]} is ahead of it and needs more than is free"
    room.gpus = left
    if lacking:
        room.first_in_line = room.first_in_line or run
        return Wait(run.run_id, lacking)
    if requests_any(run):
        room.slots -= 1
    else:
        room.driver_slots -= 1
    room.holders.append(run)
    return Start(run.run_id, tuple(granted))


def take_turns(
    waiting: Sequence[RunRecord], started: Sequence[RunRecord], limits: Mapping[str, int]
) -> tuple[list[RunRecord], list[Wait]]:
    """For a cluster, which has its own queue: the runs that their experiments allow now, and what the others wait for.

    One that waits in the queue of its cluster counts as started.
    """
    counts = Counter(run.membership.experiment for run in started if run.membership.axes)
    ready: list[RunRecord] = []
    waits: list[Wait] = []
    for run in waiting:
        name = run.membership.experiment
        limit = limits.get(name, 0) if run.membership.axes else 0
        if limit and counts[name] >= limit:
            waits.append(Wait(run.run_id, _another(name, limit)))
        else:
            ready.append(run)
            counts[name] += bool(run.membership.axes)
    return ready, waits


def _another(name: str, limit: int) -> str:
    return f"another run of the experiment {name} (at most {limit} at a time)"


def requests_any(run: RunRecord) -> bool:
    """Whether the run requests CPUs or memory; one that does not is a driver."""
    return bool(run.resources.cpus or run.resources.memory_mb)


def exceeds(run: RunRecord, machine: Machine, gpu_count: int) -> str:
    """What the run requests beyond the whole machine; empty when it fits."""
    asked = run.resources
    if run.gpus.mandatory and run.gpus.requested > gpu_count:
        return f"{_format_gpus(run.gpus.requested)}, but this machine has {gpu_count}"
    if asked.cpus > machine.cpus + _ROUNDING:
        return f"{format_cpus(asked.cpus)}, but runs may use {machine.cpus:g}"
    if asked.memory_mb > machine.memory_mb:
        return f"{format_memory(asked.memory_mb)} of memory, but runs may use {format_memory(machine.memory_mb)}"
    return ""


def _format_gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"
