"""A random evaluation with faults, from a seed and a number. The same two give the same schedule."""

import random
from dataclasses import dataclass
from typing import Any

from stage import WORLD, toy

LENGTH = 12  # steps of an episode, of toy players as in toy_world
LANES = "abc"
# How the operator of a further lane misbehaves; none of it concerns the other lanes.
HABITS: dict[str, dict[str, Any]] = {
    "calm": {},
    "hangs": {"hang_at": 15, "timeout_s": 1},
    "prints garbage": {"garbage_every": 2, "long_line_bytes": 1 << 20, "stderr_lines": 200},
    "forks children": {"fork_children": 2, "double_fork": True, "setsid": True, "rename_process": "kworker/0:1"},
    "crashes": {"crash_at": 14},
    "dies": {"signal_at": 14},
    "refuses SIGTERM": {"ignore_sigterm": True, "fork_children": 1},
}
# These count the steps of their process, and a resumed run has a new one.
COUNTING = ("hangs", "crashes", "dies")
FAULTS = {  # fault → its relative frequency
    "kill operator": 4,
    "kill host": 4,
    "kill daemon": 4,
    "kill tailer": 3,
    "kill conductor": 2,
    "kill holder": 2,
    "cancel": 2,
}
FATAL = ("kill conductor", "kill holder", "cancel")  # they end the run, which is then resumed


@dataclass(frozen=True)
class EvaluationFault:
    kind: str
    lane: str
    at: int  # after this many steps of the lane

    @property
    def is_fatal(self) -> bool:
        return self.kind in FATAL


@dataclass(frozen=True)
class EvaluationSchedule:
    seed: int
    number: int
    is_hosted: bool
    is_manual: bool
    habit: str
    faults: tuple[EvaluationFault, ...]

    @property
    def runs(self) -> tuple[str, ...]:
        return (self.habit,)

    @property
    def script(self) -> dict[str, Any]:
        env, own = (WORLD, {"owns_env": False}) if self.is_hosted else ("toy", {"episode_length": LENGTH})
        chance: Any = "random" if self.is_hosted else toy(**own, paint=True)
        operators = {"a": chance, "b": toy(**own), "c": chance, "odd": toy(**own, **HABITS[self.habit])}
        return {"env": env, "operators": operators, "seeds": "0-3", "pace": 10, "on_done": "next"}

    def __str__(self) -> str:
        place = "hosted" if self.is_hosted else "players"
        faults = "; ".join(f"{fault.kind} {fault.lane} at {fault.at}" for fault in self.faults)
        mode = "manual" if self.is_manual else "script"
        return f"seed {self.seed} evaluation {self.number}: {place}, {mode}, {self.habit}, faults [{faults}]"


def make_evaluation(seed: int, number: int) -> EvaluationSchedule:
    dice = random.Random(f"evaluation {seed} {number}")
    is_hosted, is_manual = dice.random() < 0.5, dice.random() < 0.3
    kinds = [kind for kind in FAULTS if is_hosted or kind != "kill host"]
    weights = [FAULTS[kind] for kind in kinds]
    chosen = dice.choices(kinds, weights, k=dice.randint(1, 4))
    # A run ends once; what would come after that is left out.
    last = next((n for n, kind in enumerate(chosen) if kind in FATAL), len(chosen))
    places = sorted(dice.randint(1, 3 * LENGTH) for _ in chosen[: last + 1])
    faults = [EvaluationFault(kind, dice.choice(LANES), at) for kind, at in zip(chosen, places, strict=False)]
    return EvaluationSchedule(seed, number, is_hosted, is_manual, dice.choice(list(HABITS)), tuple(faults))
