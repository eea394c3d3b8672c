"""Cyclic garbage with Qt objects in it dies in the GUI's thread, whichever thread allocates."""

import gc
import threading
import weakref

import pytest
from PySide6.QtCore import QObject

from mosaic.gui.garbage import GarbageCollector


@pytest.fixture
def collector(qapp):
    gc.collect()
    collector = GarbageCollector(tick_ms=5)
    collector.start()
    yield collector
    collector._timer.stop()  # the suite's own collector goes on: see conftest.py


class Knot(QObject):
    """A Qt object that only the collection of cycles can destroy."""

    def __init__(self, deaths):
        super().__init__()
        self.me = self
        self.destroyed.connect(lambda: None)
        weakref.finalize(self, lambda: deaths.append(threading.current_thread()))


def allocate_in_another_thread():
    """As the hub's threads do when they parse answers; enough for several automatic collections."""
    thread = threading.Thread(target=lambda: [[number] for number in range(200_000)])
    thread.start()
    thread.join()


def test_cycles_die_in_the_thread_of_the_window(qtbot, collector):
    deaths = []
    for _ in range(50):
        Knot(deaths)

    allocate_in_another_thread()
    assert deaths == []

    allocated = [[number] for number in range(2000)]  # more than the first threshold
    qtbot.waitUntil(lambda: len(deaths) == 50, timeout=10000)
    assert set(deaths) == {threading.main_thread()}
    del allocated


def test_every_generation_is_collected_in_time(qtbot, collector):
    deaths = []
    knot = Knot(deaths)
    gc.collect(0)
    gc.collect(1)  # it is old now
    del knot

    kept = []

    def allocate_and_look():
        kept.append([[number] for number in range(2000)])  # kept: what dies at once does not count
        return len(deaths) == 1

    qtbot.waitUntil(allocate_and_look, timeout=30000)


def test_an_idle_window_collects_nothing(collector, monkeypatch):
    collected = []
    monkeypatch.setattr(gc, "get_count", lambda: (3, 2, 1))
    monkeypatch.setattr(gc, "collect", lambda generation: collected.append(generation))

    collector.collect()

    assert collected == []


def test_stopping_gives_the_collection_back(qapp):
    collector = GarbageCollector()
    collector.start()
    assert not gc.isenabled()

    collector.stop()

    assert gc.isenabled()
    gc.disable()  # as the suite's own collector has it
