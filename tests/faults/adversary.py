"""The adversary: which case has which number. A case is one damage to one file while runs live.

Every number gives the same case for the same seed, whatever ran before. The first numbers walk the trust table, every
file with every damage; later ones are random.
"""

import random
from dataclasses import asdict, dataclass

from damage import DAMAGES
from trust_table import NOT_DAMAGED, PLACES

WORKER, OUTSIDER = "worker", "outsider"  # who does the damage
# What happens next. `restart`: the daemon is killed, and a new one finds the damage.
FINISH, CANCEL, RESTART, KILL_HOLDER = "finish", "cancel", "restart", "kill holder"
OF_ONE_RUN = ("run.", "root.config_file", "root.worker_file")
# What a worker leaves or a user deletes at any time, and a restart must find again: the riskiest part of the table.
CHOSEN = {
    "run.exit": ("FIFO", "link to /dev/zero", "another run's", "directory", "wrong type", "huge"),
    "run.started": ("another run's", "missing", "FIFO", "wrong type"),
    "run.owner_lock": ("missing", "FIFO", "directory", "link to itself"),
    "run.launch": ("missing", "another run's", "wrong type"),
    "run.tail_lock": ("FIFO", "directory"),
    "run.commands": ("FIFO",),
    "run.holder_log": ("FIFO",),
    "run.telemetry": ("missing", "wrong type", "flipped byte", "empty", "FIFO", "another run's", "mode 000"),
    "run.telemetry-wal": ("missing", "truncated"),
    "run.stdout": ("missing", "FIFO", "truncated", "link to /dev/zero"),
    "run.stderr": ("FIFO", "link to /dev/zero"),
    "run.path": ("mode 000", "missing", "FIFO"),
    "run.logs": ("mode 000", "directory"),
    "run.checkpoints": ("mode 000", "FIFO", "link elsewhere"),
    "run.analytics": ("link to /dev/zero",),
    "root.config_file": ("FIFO", "wrong type"),
    "root.registry": ("missing", "empty", "flipped byte"),
    "root.registry-wal": ("missing",),
    "root.index": ("link to itself",),
    "root.address": ("wrong type",),
    "root.token": ("empty",),
    "root.settings": ("wrong type", "FIFO"),
    "root.pid": ("another run's", "FIFO"),
    "root.socket": ("missing",),
    "root.machine_id": ("wrong type",),
}


@dataclass(frozen=True)
class Case:
    seed: int
    number: int
    place: str
    damage: str
    by: str
    then: str

    @property
    def is_of_one_run(self) -> bool:
        return self.place.startswith(OF_ONE_RUN)

    def to_dict(self) -> "dict[str, str | int]":
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.place} × {self.damage}, by the {self.by}, then {self.then}"


def walked() -> list[tuple[str, str]]:
    """Every file of the trust table with every damage."""
    return [(place, kind) for place in PLACES.values() if place not in NOT_DAMAGED for kind in DAMAGES]


def make_case(seed: int, number: int) -> Case:
    dice = random.Random(f"adversary {seed} {number}")
    table = walked()
    place, damage = table[number] if number < len(table) else dice.choice(table)
    return _case(seed, number, place, damage, dice)


def chosen_cases(seed: int) -> list[Case]:
    """The cases of the quick suite; their numbers are those of the walk, so that one can be repeated alone."""
    numbers = {pair: number for number, pair in enumerate(walked())}
    pairs = [(place, damage) for place, damages in CHOSEN.items() for damage in damages]
    return [make_case(seed, numbers[pair]) for pair in pairs]


def _case(seed: int, number: int, place: str, damage: str, dice: random.Random) -> Case:
    by = dice.choice((WORKER, OUTSIDER)) if place.startswith(OF_ONE_RUN) else OUTSIDER
    then = dice.choice((FINISH, CANCEL, RESTART, KILL_HOLDER)) if place.startswith(OF_ONE_RUN) else RESTART
    return Case(seed, number, place, damage, by, then)
