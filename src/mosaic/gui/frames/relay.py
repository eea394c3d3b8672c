"""Frames of a run on another machine: the daemon sends them as PNG, the hub's thread decodes them."""

from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient, Frame
    from mosaic.gui.hub.hub import TelemetryAsyncHub

HZ = 15.0
MAX_DIM = 1280
WAIT_S = 10.0


class Relay(QObject):
    """Keeps only the newest frame. It is a viewer until it is closed."""

    ended = Signal(str)  # why there are no more frames; empty: the run is over

    def __init__(self, hub: "TelemetryAsyncHub", run_id: str, lane: int | None) -> None:
        super().__init__()
        self._run_id, self._lane = run_id, lane
        self._newest: deque[Frame] = deque(maxlen=1)  # filled by the hub's thread
        self._job = hub.ask(
            self._receive, lambda _: self.ended.emit(""), lambda error: self.ended.emit(str(error)), owner=self
        )

    async def _receive(self, client: "AsyncTrainerClient") -> None:
        async with aclosing(client.frames(self._run_id, HZ, WAIT_S, MAX_DIM, self._lane)) as frames:  # type: ignore[type-var]
            async for frame in frames:
                self._newest.append(frame)

    def fresh_frame(self) -> "Frame | None":
        return self._newest.popleft() if self._newest else None

    is_current = True  # the client follows the run by itself

    def close(self) -> None:
        self._job.cancel()
