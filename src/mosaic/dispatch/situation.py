"""The situation of a run, from its folder: the same for the daemon that started it and for one that finds it later.

exit.json of this attempt, with its secret,
and the root of its tree is gone ────────▶ ENDED
lock held ───────────────────────────────▶ HELD       its holder is alive
our holder has not locked yet ───────────▶ STARTING
lock free, anything at started.json,
or an exit.json that proves nothing ─────▶ ORPHANED   its holder died: kill what is left
lock free, nothing started ──────────────▶ UNSTARTED  a daemon died between claim and start: start it (again)

Of a run on another machine its cluster tells what the lock tells here, and two more:
its job waits ───────────────────────────▶ QUEUED     again, after it was started: an administrator did that
its node is gone ────────────────────────▶ LOST       which proves nothing
No answer is no news: then it is HELD if it was ever started, and else STARTING.
"""

import os
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

from mosaic.dispatch.launcher import Launcher, Ref, Stage
from mosaic.model.durable import read_json
from mosaic.model.end_proof import LARGEST, Facts, is_attested, of_attempt, own_launch, own_start, secret_of

LONGEST_WORDS = 200


class Case(Enum):
    ENDED = auto()
    HELD = auto()
    STARTING = auto()
    ORPHANED = auto()
    UNSTARTED = auto()
    QUEUED = auto()
    LOST = auto()


@dataclass(frozen=True)
class Situation:
    case: Case
    facts: dict[str, Any] = field(default_factory=dict)  # exit.json or started.json
    # UNSTARTED: what its holder lacked to start the worker; LOST: what happened; HELD: why its cluster does not say so
    words: str = ""
    node: str = ""  # of a cluster: the machine on which it started


def situation(ref: Ref, launcher: Launcher) -> Situation:
    rundir = ref.rundir
    # The lock is checked before exit.json is read: a holder writes the file before it releases the lock.
    sight = launcher.look(ref)
    exit, started = (_of(path, ref.attempt) for path in (rundir.exit, rundir.started))
    launch = of_attempt(own_launch(rundir), ref.attempt)
    started = dict(own_start(started, launch))
    node = words_in(started, "node") or sight.node[:LONGEST_WORDS]
    if exit and is_attested(exit, secret_of(launch, started)) and not _is_contradicted(exit, ref, started, launcher):
        return Situation(Case.ENDED, exit, node=node)
    is_started = bool(exit) or os.path.lexists(rundir.started)
    if sight.stage is Stage.RUNNING or (sight.stage is Stage.UNKNOWN and is_started):
        silent = "its cluster does not answer" if sight.stage is Stage.UNKNOWN else ""
        return Situation(Case.HELD, started, sight.reason or silent, node)
    if sight.stage in (Stage.STARTING, Stage.UNKNOWN):
        return Situation(Case.STARTING)
    if sight.stage is Stage.LOST:
        return Situation(Case.LOST, started, sight.reason)
    if sight.stage is Stage.QUEUED:
        return Situation(Case.QUEUED, started)
    # An exit.json that proves nothing, or a damaged started.json, still says that the run had its worker.
    if is_started:
        return Situation(Case.ORPHANED, started)
    return Situation(Case.UNSTARTED, words=sight.reason)


def words_in(facts: Facts, name: str) -> str:
    """A text that is shown, from a file that a worker or a node can write where nothing hides it."""
    found = facts.get(name)
    return found[:LONGEST_WORDS] if isinstance(found, str) else ""


def _is_contradicted(exit: Facts, ref: Ref, started: Facts, launcher: Launcher) -> bool:
    return not exit.get("unkillable") and launcher.lives(ref, started)


def _of(path: Path, attempt: int) -> dict[str, Any]:
    return dict(of_attempt(read_json(path, LARGEST), attempt))
