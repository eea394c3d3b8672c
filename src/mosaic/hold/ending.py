"""How a process tree is ended, step by step, and when each step is due. Knows no processes; time is passed in.

cancel, time limit, lost contact
                            TERMINATE ─grace─▶ KILL ─5 s─▶ FORCE
hang              AUTOPSY ─1 s─▶ the same         └─unkillable_s─▶ GIVE_UP
worker exited               ─sweep─▶ KILL …
"""

from enum import Enum

AUTOPSY_S = 1.0
SWEEP_S = 2.0
FORCE_S = 5.0


class Step(Enum):
    AUTOPSY = "SIGUSR2 to the processes that then print their stacks"
    TERMINATE = "SIGTERM to all processes"
    KILL = "SIGKILL to all processes"
    FORCE = "SIGKILL from outside, because the root process does not react"
    GIVE_UP = "giving up, because SIGKILL does not end them"


class Ending:
    """The first cause counts: a cancel during the grace period of a time limit changes nothing."""

    def __init__(self, grace_s: float, unkillable_s: float) -> None:
        self.cause: str | None = None
        self.sweep_s = min(grace_s, SWEEP_S)
        self._grace_s = grace_s
        self._unkillable_s = unkillable_s
        self._steps: list[tuple[float, Step]] = []
        self._limit_at: float | None = None
        self._is_closed = False

    def limit(self, now: float, time_limit_s: "float | None") -> None:
        """The worker starts now and may run this long."""
        self._limit_at = None if time_limit_s is None else now + time_limit_s

    def begin(self, cause: str, now: float) -> None:
        if self._is_closed:
            return
        self._close()
        self.cause = cause
        if cause == "hang":
            self._steps.append((now, Step.AUTOPSY))
            now += AUTOPSY_S
        self._steps.append((now, Step.TERMINATE))
        self._plan_kill(now + self._grace_s)

    def worker_ended(self, now: float) -> None:
        """Ignore later causes. The root process ends the rest of the tree; these steps are a safety net."""
        self._close()
        self._plan_kill(now + self.sweep_s + 1.0)

    def due(self, now: float) -> "list[Step]":
        """The steps that are due, in order, each once."""
        if self._limit_at is not None and now >= self._limit_at:
            self.begin("time limit", now)
        due = [(at, step) for at, step in self._steps if at <= now]
        self._steps = [(at, step) for at, step in self._steps if at > now]
        return [step for _, step in sorted(due, key=lambda pair: pair[0])]

    @property
    def next_at(self) -> "float | None":
        return min((at for at, _ in self._steps), default=self._limit_at)

    def _close(self) -> None:
        self._is_closed = True
        self._limit_at = None
        self._steps = []

    def _plan_kill(self, at: float) -> None:
        self._steps += [(at, Step.KILL), (at + FORCE_S, Step.FORCE), (at + self._unkillable_s, Step.GIVE_UP)]
