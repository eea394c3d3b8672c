"""`mosaic gui --debug`: names what keeps the window from responding."""

import logging
import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer

LIMIT_S = 0.1
TICK_MS = 33
LOOK_S = 0.02
KEPT = 200

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Block:
    """A time in which the GUI's thread did nothing else."""

    seconds: float
    culprit: str  # in words: `load_schema (new_run/fields.py, line 120)`
    stack: str


class Watchdog(QObject):
    """A timer ticks in the GUI's thread; another thread notices when it stops, and looks at what runs instead."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        super().__init__()
        self.blocks: deque[Block] = deque(maxlen=KEPT)
        self._limit_s = limit_s
        self._thread_id = threading.get_ident()
        self._last_tick = time.monotonic()
        self._is_stopped = threading.Event()
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self._tick)
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    def start(self) -> None:
        self._tick()
        self._timer.start()
        self._thread.start()

    def stop(self) -> None:
        self._timer.stop()
        self._is_stopped.set()
        self._thread.join(1)

    def _tick(self) -> None:
        self._last_tick = time.monotonic()

    def _watch(self) -> None:
        while not self._is_stopped.wait(LOOK_S):
            since = self._last_tick
            if time.monotonic() - since > self._limit_s:
                self._report(since)

    def _report(self, since: float) -> None:
        """Look at the stack once, wait for the next tick, and log how long it took."""
        culprit, stack = describe(stack_of(self._thread_id))
        while self._last_tick == since and not self._is_stopped.wait(LOOK_S):
            pass
        block = Block(self._last_tick - since, culprit, stack)
        if block.seconds > 0:
            self.blocks.append(block)
            logger.warning("The window did not respond for %.0f ms: %s\n%s", block.seconds * 1000, culprit, stack)


def stack_of(thread_id: int) -> traceback.StackSummary:
    """Where a thread is, outermost first, without its frames: a frame that is kept keeps its local variables.

    A QPainter that outlives its paintEvent, or ends in another thread, takes the whole process down.
    """
    found = []
    frame = sys._current_frames().get(thread_id)
    while frame:
        found.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, None))
        frame = frame.f_back
    return traceback.StackSummary.from_list(found[::-1])


def describe(stack: traceback.StackSummary) -> tuple[str, str]:
    """What a thread does, in words, and its stack. The innermost function of ours is the one to mend."""
    ours = [entry for entry in stack if "/mosaic/gui/" in entry.filename or "/mosaic/present/" in entry.filename]
    text = "".join(traceback.format_list(stack))
    if not ours or ours[-1].filename.endswith("/gui/app.py"):
        return "Qt itself: painting, layout, or a machine that is too busy", text
    place = ours[-1].filename.rpartition("/mosaic/")[2]
    return f"{ours[-1].name} ({place}, line {ours[-1].lineno})", text
