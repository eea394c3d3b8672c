"""What ingest hears from runs, brought to the dispatcher."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from mosaic.dispatch.live import LiveRun

if TYPE_CHECKING:
    from mosaic.dispatch.loop import Dispatcher


class Hearing:
    """What ingest tells the dispatcher about its runs (`ingest.receive.Listener`)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.dispatcher: "Dispatcher | None" = None

    def measured(self, run_id: str) -> None:
        live = self._live(run_id)
        if live and not live.measured:
            live.measured = True
            self._wake(run_id)

    def was_beating(self, run_id: str) -> None:
        live = self._live(run_id)
        if live and live.vitals.last_heartbeat is None:
            live.vitals.heartbeat(self._clock(), None)

    def heartbeat(self, run_id: str, progress: int | None) -> None:
        live = self._live(run_id)
        if live:
            live.vitals.heartbeat(self._clock(), progress)

    def activity(self, run_id: str) -> None:
        live = self._live(run_id)
        if live:
            live.vitals.activity(self._clock())

    def behind(self, run_id: str, unread_bytes: int) -> None:
        live = self._live(run_id)
        if live:
            live.vitals.behind_bytes = unread_bytes

    def exited(self, run_id: str) -> None:
        self._wake(run_id)

    def drained(self, run_id: str) -> None:
        live = self._live(run_id)
        if live:
            live.drained = True
            self._wake(run_id)
        elif self.dispatcher:
            self.dispatcher.complete_late(run_id)

    def trouble(self, run_id: str, text: str) -> None:
        # In memory only: what keeps a line from being stored (a full disk) keeps a note from being stored as well.
        live = self._live(run_id)
        if live:
            live.trouble = text

    def _live(self, run_id: str) -> LiveRun | None:
        return self.dispatcher.live_run(run_id) if self.dispatcher else None

    def _wake(self, run_id: str) -> None:
        if self.dispatcher:
            self.dispatcher.wake(run_id)
