"""The situation of a run, from its folder: the same for the daemon that started it and for one that finds it later.

exit.json of this attempt ───────────────▶ ENDED
lock held ───────────────────────────────▶ HELD       its holder is alive
our holder has not locked yet ───────────▶ STARTING
lock free, started.json of this attempt ─▶ ORPHANED   its holder died: kill what is left
lock free, nothing started ──────────────▶ UNSTARTED  a daemon died between claim and start: start it (again)
"""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from mosaic.dispatch.launcher import Launcher
from mosaic.model.durable import read_json
from mosaic.model.rundir import RunDir

LARGEST = 1 << 20  # bytes of exit.json and started.json: parsing more would delay other runs


class Case(Enum):
    ENDED = auto()
    HELD = auto()
    STARTING = auto()
    ORPHANED = auto()
    UNSTARTED = auto()


@dataclass(frozen=True)
class Situation:
    case: Case
    facts: dict[str, Any] = field(default_factory=dict)  # exit.json or started.json


def situation(rundir: RunDir, attempt: int, launcher: Launcher) -> Situation:
    # The lock is checked before exit.json is read: a holder writes the file before it releases the lock.
    held = launcher.is_held(rundir)
    exit = _of_attempt(read_json(rundir.exit, LARGEST), attempt)
    if exit:
        return Situation(Case.ENDED, exit)
    started = _of_attempt(read_json(rundir.started, LARGEST), attempt)
    if held:
        return Situation(Case.HELD, started)
    if launcher.is_starting(rundir):
        return Situation(Case.STARTING)
    if started:
        return Situation(Case.ORPHANED, started)
    return Situation(Case.UNSTARTED)


def _of_attempt(value: dict[str, Any] | None, attempt: int) -> dict[str, Any]:
    return value if value and value.get("attempt") == attempt else {}
