"""Which waiting runs may start now, and with which GPUs. Pure decisions, no I/O."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mosaic.model.machine import Machine, tell_cpus, tell_memory
from mosaic.model.run import RunRecord

MOST_NAMED = 3  # of the runs that are in the way
_NEXT_TO_NOTHING = 1e-6  # sums of fractions of CPUs are not exact


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
    """What is left to give. `holders` are the runs that have the rest."""

    machine: Machine
    gpu_count: int  # of the machine, in use or not
    places: int
    gpus: list[str]
    holders: list[RunRecord]
    first_in_line: RunRecord | None = field(default=None)  # waits for CPUs or memory; nobody after it gets any

    @property
    def cpus(self) -> float:
        return self.machine.cpus - sum(run.resources.cpus for run in self.holders)

    @property
    def memory_mb(self) -> int:
        return self.machine.memory_mb - sum(run.resources.memory_mb for run in self.holders)

    def lacks(self, run: RunRecord) -> str:
        """Which CPUs or memory the run must wait for; empty when it has them."""
        asked = run.resources
        if asked.cpus > max(self.cpus, 0.0) + _NEXT_TO_NOTHING:
            return f"{tell_cpus(asked.cpus)}: {self._cpus_in_use()}"
        if asked.memory_mb > max(self.memory_mb, 0):
            requested, total = self.machine.memory_mb - self.memory_mb, self.machine.memory_mb
            use = f"{tell_memory(requested)} of {tell_memory(total)} are requested by other runs"
            return f"{tell_memory(asked.memory_mb)} of memory: {use}"
        return ""

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
) -> Iterator[Start | Wait]:
    """One decision per waiting run, oldest first.

    1. First come, first served: a run that waits for CPUs or memory holds up every later run that requests any, small
       ones too, or a large run might starve. It keeps the GPUs that it would get.
    2. A run that waits for GPUs holds up later runs that want GPUs, and no others.
    3. Runs that request neither CPUs nor memory (drivers, which wait for other runs) pass everybody but `max_runs`.
    4. A run that requests more than the whole machine, GPUs included (there was more when it was submitted), waits,
       and holds up nobody.
    """
    room = Room(machine, gpu_count, max_runs - len(running), list(free_gpus), list(running))
    for run in waiting:
        yield _decide(run, room, max_runs)


def _decide(run: RunRecord, room: Room, max_runs: int) -> Start | Wait:
    wanted = run.gpus.requested
    if room.places <= 0:
        return Wait(run.run_id, f"one of the {max_runs} places to run in")
    if too_large := exceeds(run, room.machine, room.gpu_count):
        return Wait(run.run_id, f"{too_large}. Cancel it, or restart the daemon with more")
    if run.gpus.mandatory and wanted > len(room.gpus):
        free, room.gpus = len(room.gpus), []
        return Wait(run.run_id, f"{_tell_gpus(wanted)} ({free} free)")
    granted, left = room.gpus[:wanted], room.gpus[wanted:]
    lacking = room.lacks(run)
    if not lacking and room.first_in_line and (run.resources.cpus or run.resources.memory_mb):
        first = room.first_in_line
        lacking = f"its turn: {first.name} {first.run_id[:13]} was first and needs more than is free"
    room.gpus = left
    if lacking:
        room.first_in_line = room.first_in_line or run
        return Wait(run.run_id, lacking)
    room.places -= 1
    room.holders.append(run)
    return Start(run.run_id, tuple(granted))


def exceeds(run: RunRecord, machine: Machine, gpu_count: int) -> str:
    """What the run requests that the whole machine does not have; empty when it fits."""
    asked = run.resources
    if run.gpus.mandatory and run.gpus.requested > gpu_count:
        return f"{_tell_gpus(run.gpus.requested)}, and there are {gpu_count}"
    if asked.cpus > machine.cpus + _NEXT_TO_NOTHING:
        return f"{tell_cpus(asked.cpus)}, and there are {machine.cpus:g}"
    if asked.memory_mb > machine.memory_mb:
        return f"{tell_memory(asked.memory_mb)} of memory, and there are {tell_memory(machine.memory_mb)}"
    return ""


def _tell_gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"
