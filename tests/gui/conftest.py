"""Real Qt without a screen, a real daemon, and the context that pages are given."""

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest

from mosaic.client import AsyncTrainerClient
from mosaic.gui.context import Context
from mosaic.gui.garbage import GarbageCollector
from mosaic.gui.hub.hub import TelemetryAsyncHub
from mosaic.gui.memory import Memory
from mosaic.gui.theme import Theme


@pytest.fixture(scope="session", autouse=True)
def garbage(qapp):
    """As in the window: a collection in one of the hub's threads can block both threads forever."""
    collector = GarbageCollector()
    collector.start()
    return collector


class Go:
    """A navigator that records where it was sent."""

    def __init__(self):
        self.visits = []

    def __getattr__(self, name):
        return lambda *args, **kwargs: self.visits.append((name, args, kwargs))


class Notes:
    """Notices that are kept."""

    def __init__(self):
        self.said, self.problems = [], []

    def say(self, text):
        self.said.append(text)

    def problem(self, sentence, details=""):
        self.problems.append((sentence, details))


@pytest.fixture
def hub(qapp, lab):
    hub = TelemetryAsyncHub(lambda: AsyncTrainerClient.connect(lab.root, start=False))
    hub.start()
    yield hub
    hub.stop()


@pytest.fixture
def context(hub, lab, tmp_path):
    return Context(hub, Memory(tmp_path / "gui.ini"), Theme(), lab.root, "", Go(), Notes())
