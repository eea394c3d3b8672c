"""The jobs of one cluster as last seen: one question for all runs, in a thread, and only while somebody asks."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mosaic.engines.cluster import Cluster
from mosaic.model.errors import MosaicError

log = logging.getLogger(__name__)
PREFIX = "mosaic-"
SHORTEST_PAUSE_S = 1.0
PAUSE_PER_WORK = 20.0  # a slow cluster is asked less often: at most a twentieth of the time is spent in that
INTEREST_S = 60.0  # after the last question nobody needs a new answer; runs ask every 20 to 28 s (supervisor.py)


class Named(Protocol):
    """A job of any engine."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...


JobT = TypeVar("JobT", bound=Named)
JobT_co = TypeVar("JobT_co", bound=Named, covariant=True)


class Engine(Protocol[JobT_co]):
    """What lists the jobs. Raises MosaicError if it gets no answer."""

    cluster: Cluster

    def jobs(self) -> Sequence[JobT_co]: ...


@dataclass(frozen=True)
class Jobs(Generic[JobT]):
    """One answer. `began_at`: monotonic, when it was asked for, so it contains everything that happened before."""

    began_at: float
    by_name: Mapping[str, JobT]
    problem: str = ""  # why there is no answer; then nothing is known


class JobWatch(Generic[JobT]):
    """Answers are never waited for: until one is there, the newest is returned, or None."""

    def __init__(self, engine: Engine[JobT], heard: Callable[[Jobs[JobT]], None] = lambda _: None) -> None:
        """`heard` is called, in another thread, with every answer."""
        self._engine = engine
        self._heard = heard
        self._newest: Jobs[JobT] | None = None
        self._asked_at = 0.0
        self._wakes: dict[str, Callable[[], None]] = {}
        self._hurry = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def newest(self, since: float = 0.0) -> Jobs[JobT] | None:
        """The newest answer to a question asked after `since`."""
        self._asked_at = time.monotonic()
        self._ensure_thread()
        newest = self._newest
        if newest is None or newest.began_at < since:
            self._hurry.set()
            return None
        return newest

    def watch(self, name: str, wake: Callable[[], None]) -> None:
        """Call `wake`, in another thread, whenever the job with this name has changed."""
        self._wakes[name] = wake

    def forget(self, name: str) -> None:
        self._wakes.pop(name, None)

    def _ensure_thread(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while time.monotonic() - self._asked_at < INTEREST_S:
            self._hurry.clear()
            before, began_at = self._newest, time.monotonic()
            self._newest = self._ask(began_at)
            self._wake_changed(before, self._newest)
            self._heard(self._newest)
            took_s = time.monotonic() - began_at
            self._hurry.wait(max(SHORTEST_PAUSE_S, PAUSE_PER_WORK * took_s))

    def _ask(self, began_at: float) -> Jobs[JobT]:
        try:
            found = [job for job in self._engine.jobs() if job.name.startswith(PREFIX)]
        except Exception as error:
            # The edge of a thread. If an answer cannot be read the last one must not count as today's.
            if not (self._newest and self._newest.problem):
                is_ours, words = isinstance(error, MosaicError), "The cluster '%s' does not answer: %s"
                log.warning(words, self._engine.cluster.name, error, exc_info=None if is_ours else error)
            return Jobs(began_at, {}, str(error) or type(error).__name__)
        # Of two jobs with one name, which only a crash between submit and record makes, the newest is last.
        return Jobs(began_at, {job.name: job for job in sorted(found, key=lambda job: _number(job.id))})

    def _wake_changed(self, before: Jobs[JobT] | None, after: Jobs[JobT]) -> None:
        old = before.by_name if before else {}
        for name, wake in list(self._wakes.items()):
            if old.get(name) != after.by_name.get(name) or before is None or before.problem != after.problem:
                wake()


def _number(job_id: str) -> int:
    digits = job_id.partition("_")[0]
    return int(digits) if digits.isdigit() else 0
