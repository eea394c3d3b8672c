"""What happens in one trial: runs, their behaviour, and the faults. The same seed gives the same schedule."""

import errno
import random
from dataclasses import dataclass, field
from typing import Any

from mosaic.model.failpoints import POINTS
from mosaic.model.states import RunState

S = RunState
End = tuple[RunState, str]  # a final state and the start of its reason
KILLED: End = (S.FAULTED, "killed by SIGKILL")
DIED: End = (S.FAULTED, "holder died")
SPAWN_ERROR: End = (S.FAULTED, "spawn error")
REPORTS_FAILURE: End = (S.FAULTED, "the worker reported run_failed")


@dataclass(frozen=True)
class Habit:
    """How a toy worker behaves, and how its run ends without a fault."""

    name: str
    end: End
    keys: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, float] = field(default_factory=dict)
    weight: int = 2
    takes_commands: bool = False


CALM: End = (S.TERMINATED, "")
CANCELLED: End = (S.CANCELLED, "cancelled")
ENDLESS = {"steps": 1_000_000, "rate": 300.0}
HIDING = {"fork_children": 2, "double_fork": True, "setsid": True, "rename_process": "kworker/0:1"}
OBEDIENT = Habit("obeys commands", CALM, {"extras": {"mode": "commands"}}, takes_commands=True)
HABITS = (
    Habit("calm", CALM, weight=8),
    Habit("plain print", CALM, {"use_plain_print": True, "text_every": 3}),
    Habit("two agents", CALM, {"agents": 2}),
    Habit("burst", CALM, {"burst": 3_000}),
    Habit("garbage", CALM, {"garbage_every": 5}),
    Habit("many lines on stderr", CALM, {"stderr_lines": 500}),
    Habit("no newline at the end", CALM, {"no_newline_at_end": True}),
    Habit("truncates stdout", CALM, {"truncate_stdout_at": 20}),
    Habit("long line", CALM, {"long_line_bytes": 9 << 20}, weight=1),
    Habit("hidden children", CALM, HIDING),
    Habit("children without an environment", CALM, {"fork_children": 1, "clear_environment": True}),
    OBEDIENT,
    Habit("crash", (S.FAULTED, "exit code 1"), {"crash_at": 40}),
    Habit("exit code", (S.FAULTED, "exit code 7"), {"exit_code": 7}),
    Habit("kills itself", KILLED, {"signal_at": 40}),
    Habit("killed in the middle of a line", KILLED, {"half_line_then_kill": 40}),
    Habit("reports run_failed", REPORTS_FAILURE, {"run_failed_exit_0": True}),
    Habit("runs out of memory", (S.FAULTED, "out of memory (likely"), {"eat_memory_mb": 400, "rlimit_mb": 300}),
    Habit("exceeds its time limit", (S.FAULTED, "time limit"), ENDLESS, {"time_s": 1.0, "grace_s": 0.5}),
    Habit("endless", CANCELLED, ENDLESS, {"grace_s": 0.5}),
    Habit(
        "endless, ignores SIGTERM", CANCELLED, ENDLESS | {"ignore_sigterm": True, "fork_children": 1}, {"grace_s": 0.5}
    ),
)
# More than the newest 64 MiB of the spool, so that some bytes are punched.
FLOOD = Habit("flood", CALM, {"long_line_bytes": 70 << 20})

FAULTS = {  # fault → its relative frequency
    "kill daemon": 6,
    "kill daemon between commands": 2,
    "kill holder": 3,
    "kill tailer": 4,
    "kill worker": 2,
    "kill client": 1,
    "stop daemon": 2,
    "stop holder": 2,
    "stop tailer": 2,
    "stop worker": 2,
    "slow client": 1,
    "stale files": 2,
    "torn tails": 2,
    "intruder": 1,
    "cancel": 2,
    "delete": 2,
    "special files": 2,
    "telemetry deleted": 1,
    "telemetry spoiled": 1,
    "empty registry": 1,
    "copied root": 1,
}
# Faults by a preloaded library: fault → the errno of every change of files whose path contains the text.
PRELOAD_FAULTS = {
    "clock forward": (0, ""),
    "clock back": (0, ""),
    "EIO registry": (errno.EIO, "registry.db"),
    "EIO telemetry": (errno.EIO, "telemetry.sqlite"),
    "EIO end": (errno.EIO, "exit.json"),
    "EIO spool": (errno.EIO, "worker.std"),
    "read-only": (errno.EROFS, "/h/"),
}
# A failpoint that no run reaches on its own needs the fault that leads there.
LEADS_TO = {
    "command.": "kill daemon between commands",
    "delete.": "delete",
    "cleanup.": "kill holder",
    "cancel.": "cancel",
}
# Where a full or failing disk is noticed. (At ack.ready a call fails after its commit, and the daemon continues.)
HERE = [name for name in POINTS if not name.startswith("far.")]  # of runs on this machine
DISK_POINTS = (
    *("submit.folder", "spawn.planned", "hold.owned", "hold.tree", "exit.proven", "punch.open", "ack.ready"),
    *("command.checked", "command.appended"),
)
MOST_SKIPPED = {"registry": 14, "commit": 4, "publish": 4, "ack": 4, "command": 30}


@dataclass(frozen=True)
class ToyRun:
    habit: Habit
    steps: int
    rate: float
    gpus: int = 0

    @property
    def keys(self) -> dict[str, Any]:
        return {"steps": self.steps, "rate": self.rate, "record_sync": True, **self.habit.keys}


@dataclass(frozen=True)
class Fault:
    kind: str
    run: int
    pause_s: float  # before the fault


@dataclass(frozen=True)
class Schedule:
    seed: int
    number: int
    gpus: int
    runs: tuple[ToyRun, ...]
    faults: tuple[Fault, ...]
    failpoints: str  # the value of MOSAIC_FAILPOINTS
    stopped_for_s: float = 0.5  # then a stopped process continues
    over_within_s: float = 90.0  # after the last fault

    @property
    def has_small_disk(self) -> bool:
        return any(fault.kind == "full disk" for fault in self.faults)

    @property
    def needs_preload(self) -> bool:
        return any(fault.kind in PRELOAD_FAULTS for fault in self.faults)

    @property
    def may_lose_lines(self) -> bool:
        """Whether a line may be refused while it is printed."""
        return self.has_small_disk or any(fault.kind in ("EIO spool", "read-only") for fault in self.faults)

    def __str__(self) -> str:
        runs = "; ".join(f"{run.habit.name}{' GPU' * run.gpus}" for run in self.runs)
        faults = "; ".join(f"{fault.kind} {fault.run}" for fault in self.faults)
        return (
            f"seed {self.seed} schedule {self.number}: runs [{runs}] faults [{faults}] failpoints [{self.failpoints}]"
        )


def make_schedule(seed: int, number: int, may_mount: bool = False, preload: bool = False) -> Schedule:
    """`may_mount`: a small disk is available; `preload`: faults of the clock and the disk are."""
    dice = random.Random(f"{seed} {number}")
    # In turn, so that every failpoint is reached; a second one at random.
    points = [HERE[(seed + number) % len(HERE)]]
    if dice.random() < 0.3:
        points.append(dice.choice([name for name in HERE if not name.startswith("punch")]))
    gpus = dice.choice((0, 1, 2))
    runs = [_make_run(dice, gpus) for _ in range(dice.randint(1, 4))]
    if points[0].startswith("punch"):
        runs = [ToyRun(FLOOD, 200, 400.0)]
    faults = [_make_fault(dice, len(runs)) for _ in range(dice.randint(1, 3))]
    if may_mount and dice.random() < 0.1 and not any("long_line_bytes" in run.keys for run in runs):
        faults.insert(0, Fault("full disk", 0, dice.uniform(0, 0.6)))
    if preload and dice.random() < 0.3:
        faults.insert(dice.randint(0, len(faults)), Fault(dice.choice(list(PRELOAD_FAULTS)), 0, dice.uniform(0, 0.6)))
    faults += _needed_faults(dice, runs, points)
    if not points[0].startswith("punch") and any(fault.kind.endswith("between commands") for fault in faults):
        runs.append(ToyRun(OBEDIENT, 60, 0.0))
    return Schedule(seed, number, gpus, tuple(runs), tuple(faults), ",".join(_order(dice, point) for point in points))


def _make_run(dice: random.Random, gpus: int) -> ToyRun:
    habit = dice.choices(HABITS, [habit.weight for habit in HABITS])[0]
    rate = dice.choice((150.0, 400.0, 1_500.0, 0.0))
    seconds = dice.uniform(2, 4) if dice.random() < 0.6 else dice.uniform(0.2, 1.2)
    steps = round(seconds * (rate or 2_000))
    return ToyRun(habit, max(60, steps), rate, min(gpus, dice.choice((0, 1, 1, 2))))


def _make_fault(dice: random.Random, runs: int) -> Fault:
    kind = dice.choices(list(FAULTS), list(FAULTS.values()))[0]
    return Fault(kind, dice.randrange(runs), dice.uniform(0, 0.6))


def _needed_faults(dice: random.Random, runs: list[ToyRun], points: list[str]) -> list[Fault]:
    """Cancels for endless runs, and the faults that lead to some failpoints."""
    needed = [Fault("cancel", n, dice.uniform(0, 0.6)) for n, run in enumerate(runs) if run.habit.end is CANCELLED]
    for start, kind in LEADS_TO.items():
        if any(point.startswith(start) for point in points):
            needed.append(Fault(kind, dice.randrange(len(runs)), dice.uniform(0, 0.4)))
    return needed


def _order(dice: random.Random, point: str) -> str:
    choices = ["kill"] * 6 + ["stop"] + (["full", "eio"] * 2 if point in DISK_POINTS else [])
    skip = dice.randint(0, MOST_SKIPPED.get(point.partition(".")[0], 0))
    return f"{point}:{dice.choice(choices)}:1:{skip}"
