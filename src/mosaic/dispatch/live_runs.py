"""The live runs: what the dispatcher remembers of each between turns, and what ingest reports about them."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mosaic.dispatch.deadlines import Vitals
from mosaic.model.run import Limits, RunRecord
from mosaic.model.rundir import RunDir

RECHECK_S = 0.1


@dataclass
class LiveRun:
    """One run. Nothing in here is needed to continue after a crash."""

    rundir: RunDir
    vitals: Vitals
    limits: Limits
    seen_at: float
    stop_sent: bool = False
    end_reason: str = ""  # why the dispatcher itself ended the run
    adopted: bool = False  # the store and the registry were asked for its earlier measurements and heartbeats
    measured: bool = False
    gone: bool = False  # its process tree is proven dead, so it uses no resources
    drained: bool = False  # its tailer has sent the last byte and will send no more
    problem: str = ""  # why its telemetry cannot be stored now
    ended_at: float = 0.0  # when the end of a run on another machine was first seen
    cleanup_since: float = 0.0  # when we began to kill what a dead holder left behind
    failing_since: float = 0.0  # since when its turns fail because of what is in its folder
    shortage: str = ""  # of descriptors, processes or memory: why nothing of its attempt could be started …
    retry_at: float = 0.0  # … and when it is tried again
    is_apart: bool = False  # its folder is on a node: what its tailer has not sent is not on this machine
    left_behind: str = ""  # which files of it stayed on its node, and why
    missing: int = -1  # bytes of its output that are not stored yet after its end …
    missing_since: float = 0.0  # … and since when that number has not changed


class LiveRuns:
    """Holds the live runs, receives ingest's reports about them (`ingest.receive.Listener`), and wakes the dispatcher.

    Built before ingest and the dispatcher, which both get it. Used on the daemon's event loop only.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, parts_wanted: Callable[[str], None] = lambda _: None
    ) -> None:
        """`parts_wanted` is called with the run whose worker says where it takes up its parts."""
        self.now = clock
        self.parts_wanted = parts_wanted
        self._runs: dict[str, LiveRun] = {}
        self._rests: dict[str, float] = {}  # of runs on other machines: until when
        self._changed: set[str] = set()
        self._drained_late: set[str] = set()
        self._woken = asyncio.Event()

    def __iter__(self) -> Iterator[LiveRun]:
        return iter(self._runs.values())

    def get(self, run_id: str) -> LiveRun | None:
        return self._runs.get(run_id)

    def remember(self, record: RunRecord, rundir: RunDir) -> LiveRun:
        """The live run of this record; a new one when it is seen for the first time."""
        live = self._runs.get(record.run_id)
        if live is None:
            now = self.now()
            live = self._runs[record.run_id] = LiveRun(rundir, Vitals(now), record.limits, now)
        return live

    def forget(self, run_id: str) -> None:
        self._runs.pop(run_id, None)
        self._rests.pop(run_id, None)

    def rest_until(self, run_id: str, time: float) -> None:
        """Nothing is due for a run until then, or until the dispatcher is woken for it. Not kept over a restart."""
        self._rests[run_id] = time

    def rests(self, run_id: str) -> bool:
        return self.now() < self._rests.get(run_id, 0.0)

    # ---- waking the dispatcher

    def wake(self, run_id: str = "") -> None:
        """Have the dispatcher look at this run (and at the queue) now instead of at its next sweep."""
        self._changed.add(run_id)
        self._woken.set()

    def wake_later(self, run_id: str) -> None:
        asyncio.get_running_loop().call_later(RECHECK_S, self.wake, run_id)

    async def wait(self, timeout_s: float) -> None:
        """Return at the next wake-up, or after the timeout."""
        try:
            await asyncio.wait_for(self._woken.wait(), timeout_s)
        except TimeoutError:
            pass

    def take_changed(self) -> set[str]:
        """The runs for which the dispatcher was woken since the last call. None of them rests any more."""
        self._woken.clear()
        changed, self._changed = self._changed, set()
        for run_id in changed:
            self._rests.pop(run_id, None)
        return changed

    def take_drained_late(self) -> set[str]:
        """The runs that were drained while they were not in here: most of them are over."""
        late, self._drained_late = self._drained_late, set()
        return late

    # ---- ingest's reports

    def measured(self, run_id: str) -> None:
        live = self._runs.get(run_id)
        if live and not live.measured:
            live.measured = True
            self.wake(run_id)

    def had_heartbeats(self, run_id: str) -> None:
        live = self._runs.get(run_id)
        if live and live.vitals.last_heartbeat is None:
            live.vitals.heartbeat(self.now(), None)

    def heartbeat(self, run_id: str, progress: int | None) -> None:
        live = self._runs.get(run_id)
        if live:
            live.vitals.heartbeat(self.now(), progress)

    def activity(self, run_id: str) -> None:
        live = self._runs.get(run_id)
        if live:
            live.vitals.activity(self.now())

    def behind(self, run_id: str, unread_bytes: int) -> None:
        live = self._runs.get(run_id)
        if live:
            live.vitals.behind_bytes = unread_bytes

    def exited(self, run_id: str) -> None:
        self.wake(run_id)

    def drained(self, run_id: str) -> None:
        live = self._runs.get(run_id)
        if live:
            live.drained = True
        else:
            self._drained_late.add(run_id)
        self.wake(run_id)

    def arriving(self, run_id: str) -> None:
        """A piece of a file has arrived from its node: waiting for the rest makes sense."""
        live = self._runs.get(run_id)
        if live:
            live.missing_since = self.now()

    def left_behind(self, run_id: str, text: str) -> None:
        live = self._runs.get(run_id)
        if live and text:
            live.left_behind = text

    def storage_problem(self, run_id: str, text: str) -> None:
        # In memory only: a full disk that refuses a line would refuse a note in the registry as well.
        live = self._runs.get(run_id)
        if live:
            live.problem = text
