"""FrameSource: the frames of one run, read only while someone can see them."""

import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import shiboken6
from mosaic_sdk.fastlane import FastLaneError
from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget

from mosaic.gui.frames.relay import Relay
from mosaic.gui.frames.shared import SharedFrames
from mosaic.present.frame_situation import Situation, situation_of

if TYPE_CHECKING:
    from mosaic.client import AsyncTrainerClient
    from mosaic.gui.context import Context
    from mosaic.gui.hub.connection import RunsChange

POLL_MS = 16
SEARCH_MS = 250  # between two attempts to find the run's shared memory, and while the window is minimised
ASK_S = 3.0  # between two questions why there is no frame
SILENCE_S = 1.0  # without a new frame: how often to check that the shared memory is still the run's
_VISIBILITY = {QEvent.Type.Show, QEvent.Type.Hide, QEvent.Type.WindowStateChange}


class FrameSource(QObject):
    """Its promises:

    1. The run is watched only while a viewer is visible and the source is not paused; then the worker stops rendering.
    2. It finds the frames again after a restart of the daemon or the worker.
    3. Reading takes at most a quarter of the GUI's time, however large the frames are.
    """

    arrived = Signal(object)  # Frame
    situation_changed = Signal(object)  # Situation

    def __init__(
        self, context: "Context", run_id: str, viewer: QWidget, lane: int | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent or viewer)
        self.run_id = run_id
        self._context = context
        self._lane = lane
        self._viewers: list[QWidget] = []
        self._frames: SharedFrames | Relay | None = None
        self._is_paused = self._is_asking = self._was_listed = False
        self._reason = ""
        self._asked_at = self._news_at = 0.0
        self.situation = self._situation_now()
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._tick)
        context.hub.runs_changed.connect(self._follow_run)
        context.hub.connection_changed.connect(self._follow_connection)
        self.destroyed.connect(self._timer.stop)
        self.add_viewer(viewer)

    def add_viewer(self, viewer: QWidget) -> None:
        """Watch while this widget is visible, too."""
        self._viewers.append(viewer)
        viewer.installEventFilter(self)
        viewer.destroyed.connect(self._look)
        self._look()

    def set_lane(self, lane: int | None) -> None:
        """Watch one lane (0, 1 …), or the run's own picture."""
        if lane != self._lane:
            self._lane = lane
            self._rest()
            self._look()

    def set_paused(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        self._look()

    @property
    def is_watching(self) -> bool:
        return self._frames is not None

    def close(self) -> None:
        self._viewers.clear()
        self._look()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _VISIBILITY:
            # A moment later: the widget is still visible during its hide event.
            QTimer.singleShot(0, self, self._look)
        return False

    # ---- when to watch

    def _look(self) -> None:
        """Watch or rest, as the viewers now require."""
        self._viewers = [viewer for viewer in self._viewers if shiboken6.isValid(viewer)]
        is_visible = any(viewer.isVisible() for viewer in self._viewers)
        if not is_visible or self._is_paused or self.situation.is_over:
            self._rest()
            self._timer.stop()
        elif not self._timer.isActive():
            self._tell()
            self._timer.start(0)

    def _rest(self) -> None:
        if self._frames:
            self._frames.close()
            self._frames = None

    def _tick(self) -> None:
        if not any(map(_is_seen, self._viewers)):
            self._rest()
            self._timer.setInterval(SEARCH_MS)
        elif self._frames is None:
            self._timer.setInterval(POLL_MS if self._attach() else SEARCH_MS)
        else:
            self._read(self._frames)

    # ---- reading

    def _attach(self) -> bool:
        self._news_at = time.monotonic()
        if self._context.root is None or self._is_elsewhere():
            self._frames = relay = Relay(self._context.hub, self.run_id, self._lane)
            relay.ended.connect(self._lose_relay)
            return True
        try:
            self._frames = SharedFrames(self.run_id, self._lane)
        except FastLaneError as error:
            self._tell(str(error))
        except OSError:
            self._ask_why()
        return self._frames is not None

    def _read(self, frames: "SharedFrames | Relay") -> None:
        began = time.perf_counter()
        frame = frames.fresh_frame()
        if frame is not None:
            self._news_at = time.monotonic()
            self.arrived.emit(frame)
        elif time.monotonic() - self._news_at > SILENCE_S:
            self._news_at = time.monotonic()
            if not frames.is_current:
                self._rest()  # the worker's shared memory is gone: look for another
        self._timer.setInterval(max(POLL_MS, int(4000 * (time.perf_counter() - began))))

    def _lose_relay(self, why: str) -> None:
        if self.sender() is self._frames:
            self._frames = None
            self._timer.setInterval(int(ASK_S * 1000))
            self._tell(why)

    # ---- why there is no frame

    def _ask_why(self) -> None:
        now = time.monotonic()
        self._tell()
        if self._is_asking or now - self._asked_at < ASK_S or self.situation.is_over:
            return
        self._asked_at, self._is_asking = now, True
        self._context.hub.ask(self._first_frame, self._learn, lambda error: self._learn(str(error)), owner=self)

    async def _first_frame(self, client: "AsyncTrainerClient") -> str:
        """Nothing if there is a frame now; NoFrames has the reason."""
        async with aclosing(client.frames(self.run_id, wait_s=0.1, lane=self._lane)) as frames:  # type: ignore[type-var]
            async for _ in frames:
                break
        return ""

    def _learn(self, reason: str) -> None:
        self._is_asking = False
        self._tell(reason)

    def _follow_run(self, change: "RunsChange") -> None:
        is_ours = self.run_id in change.deleted or any(run.run_id == self.run_id for run in change.runs)
        if is_ours or change.is_whole:
            was_over = self.situation.is_over
            self._tell()
            if was_over != self.situation.is_over:
                self._end_with_last_frame() if self.situation.is_over else self._look()

    def _follow_connection(self, _: object) -> None:
        self._tell()

    def _end_with_last_frame(self) -> None:
        if self._frames and (frame := self._frames.fresh_frame()):
            self.arrived.emit(frame)
        self._look()

    def _is_elsewhere(self) -> bool:
        """Whether the run is on another machine than the daemon, which relays its frames then."""
        run = self._context.hub.runs.get(self.run_id)
        return bool(run and run.on)

    def _situation_now(self) -> Situation:
        hub = self._context.hub
        run = hub.runs.get(self.run_id)
        self._was_listed = self._was_listed or run is not None
        return situation_of(run, self._was_listed and hub.connection.state == "ok", self._reason)

    def _tell(self, reason: str | None = None) -> None:
        self._reason = self._reason if reason is None else reason
        situation = self._situation_now()
        if situation != self.situation:
            self.situation = situation
            self.situation_changed.emit(situation)


def _is_seen(viewer: QWidget) -> bool:
    """Whether its pixels can be seen: not on another tab, not minimised."""
    if not viewer.isVisible() or viewer.window().isMinimized():
        return False
    handle = viewer.window().windowHandle()
    return handle is None or handle.isExposed()
