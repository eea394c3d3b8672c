"""The interface between the dispatcher and whatever runs the processes of a run: this machine, or another scheduler."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Protocol

from mosaic.model.rundir import RunDir


@dataclass(frozen=True)
class Ref:
    """One attempt of a run."""

    rundir: RunDir
    attempt: int
    job: str = ""  # what `submit` and `begin` returned, from the registry; only the launcher itself reads it


class Stage(Enum):
    """How far an attempt is, as far as its launcher can see."""

    UNKNOWN = auto()  # the launcher gets no answer: that is no news, and never an end
    ABSENT = auto()  # nothing of it is known: it was never submitted, has ended, or was forgotten
    QUEUED = auto()
    STARTING = auto()  # its holder may start the worker at any moment
    RUNNING = auto()  # its holder is alive
    ENDED = auto()  # its holder has ended, and no other will start
    LOST = auto()  # its node is gone: what ran there may still run


@dataclass(frozen=True)
class Sight:
    stage: Stage
    reason: str = ""  # what it waits for or lacks; when it has ended, how, if its holder did not end by itself
    node: str = ""
    # Of an attempt that ended before it started its worker: whether to make another one. None: a few times.
    retry: bool | None = None


class Stop(Enum):
    TERM = auto()  # SIGTERM to the tree, its grace period, SIGKILL
    AUTOPSY = auto()  # the same after its processes have printed their Python stacks


class Launcher(Protocol):
    """Runs one holder per attempt somewhere. All calls may be repeated; those marked * are made in a thread.

    A crash between any two calls is followed by `look` or `find` in another daemon.
    """

    def submit(self, ref: Ref, launch: dict[str, Any]) -> str:
        """* Write launch.json and hand the attempt over. Nothing of it runs before `begin`. Returns its job."""

    def begin(self, ref: Ref) -> str:
        """* The job is recorded: let the holder start. Returns the job from now on, or raises."""

    def is_pending(self, ref: Ref) -> bool:
        """Whether the job waits for `begin`."""

    def find(self, ref: Ref) -> str | None:
        """* The job of an attempt that may have been submitted before a crash; None if there is none."""

    def look(self, ref: Ref) -> Sight:
        """* How far the attempt is. An engine is asked once for all of its runs."""

    def lives(self, ref: Ref, started: Mapping[str, Any]) -> bool:
        """* Whether a process of its tree is known to be alive: then it has not ended, whatever its files say."""

    def watch(self, ref: Ref, wake: Callable[[], None]) -> None:
        """Call `wake` when the holder ends, as soon as that is known: a hint, in addition to `look`."""

    def stop(self, ref: Ref, how: Stop = Stop.TERM) -> bool:
        """End the attempt, queued or running. False: not done yet, ask again. Of one that is queued, and is to be
        cancelled, True means that nothing of it can start any more, even if its engine keeps its job."""

    def fence(self, ref: Ref) -> int | None:
        """* Take the owner's lock, so that no late holder can; None when it is held. Closing it releases the lock."""

    def settle(self, ref: Ref, started: dict[str, Any]) -> bool:
        """* End what a dead holder left behind; True when nothing is alive and nothing late can start a worker."""

    def keep_log(self, ref: Ref) -> None:
        """* Have the holder's log in the control folder, also of an attempt that ended before it started its worker."""

    def drain(self, ref: Ref) -> None:
        """* Have the output of a run whose holder is gone read to its end."""

    def forget(self, ref: Ref) -> None:
        """The run is over: release what was kept for it."""

    def cpu_s(self, ref: Ref) -> float | None:
        """* CPU seconds that the tree has used; None when they are unknown."""

    def room(self) -> str | None:
        """What a new run must wait for before it can be submitted; empty: nothing, None: not known yet."""


class Launchers:
    """The launcher of each run: this machine's own, or that of the engine that the run was submitted for."""

    def __init__(self, local: Launcher, engine: Callable[[str], Launcher] | None = None) -> None:
        """`engine` returns the launcher of an engine by its name, and raises a MosaicError if there is none."""
        self._local = local
        self._engine = engine

    def room(self, on: str) -> str | None:
        """What a run for this place must wait for before it is handed over; empty: nothing, None: not known yet."""
        return self.of(on).room()

    def of(self, on: str) -> Launcher:
        """`on`: where the run was submitted for; empty for this machine, else CLUSTER or CLUSTER:PARTITION."""
        if not on or self._engine is None:
            return self._local
        return self._engine(on.partition(":")[0])
