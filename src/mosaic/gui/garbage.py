"""Collects cyclic garbage in the GUI's thread only."""

import gc

from PySide6.QtCore import QObject, QTimer

TICK_MS = 250


class GarbageCollector(QObject):
    """Replaces Python's automatic collection, which runs in whichever thread happens to allocate.

    There it may destroy a widget: Qt then holds a lock and waits for the GIL, while the GUI's thread holds the GIL and
    waits for that lock. Such a window never moves again (seen with the hub's threads; tests/gui/shell/test_garbage.py).
    """

    def __init__(self, tick_ms: int = TICK_MS) -> None:
        super().__init__()
        self._timer = QTimer(self, interval=tick_ms)
        self._timer.timeout.connect(self.collect)

    def start(self) -> None:
        gc.disable()
        self._timer.start()

    def stop(self) -> None:
        """Give the collection back to Python. Not while other threads run."""
        self._timer.stop()
        gc.enable()

    def collect(self) -> None:
        """Collect the generations that are due, by Python's own thresholds."""
        due = -1
        for count, threshold in zip(gc.get_count(), gc.get_threshold(), strict=True):
            if count <= threshold:
                break
            due += 1
        if due >= 0:
            gc.collect(due)
