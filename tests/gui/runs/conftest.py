"""One daemon for all tests of a module, and lists of runs that no test could wait for."""

import shutil
import tempfile
import time
from pathlib import Path

import pytest
from lab import Lab

from mosaic.client.run import Run
from mosaic.gui.context import Context
from mosaic.gui.hub.connection import Connection, RunsChange
from mosaic.gui.hub.hub import TelemetryAsyncHub
from mosaic.gui.memory import Memory
from mosaic.gui.runs.page import RunsPage
from mosaic.gui.theme import Theme
from mosaic.wire import mosaic_pb2 as pb

STATES = ("TERMINATED", "FAULTED", "CANCELLED", "EXECUTING", "INIT")


@pytest.fixture(scope="module")
def lab():
    home = Path(tempfile.mkdtemp(prefix="mosaic-"))
    lab = Lab(home)
    yield lab
    lab.close()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def make_run():
    """A run as the daemon lists it."""

    def make(number=0, state="EXECUTING", summary=None, **fields):
        now = time.time()
        defaults = {
            "run_id": f"01JCQ{number:021}",
            "name": f"run {number}",
            "worker_name": "toy",
            "created_at": now - 100_000 + number,
            "updated_at": now,
        }
        info = pb.RunInfo(state=pb.State.Value(state), **{**defaults, **fields})
        info.summary.CopyFrom(pb.Summary(**(summary or {"last_step": -1})))
        return Run.from_wire(info)

    return make


@pytest.fixture
def make_runs(make_run):
    """Many runs in all states, the newest with the highest number."""

    def make(count):
        return [
            make_run(
                number,
                STATES[number % len(STATES)],
                {"env_steps": number, "mean_return": number % 500, "mean_over": 9, "steps_per_s": 10},
                total_steps=20_000,
                env_id=("CartPole-v1", "Pong")[number % 2],
                algo=("ppo", "dqn", "sac")[number % 3],
            )
            for number in range(count)
        ]

    return make


class Recorder:
    """A navigator, or notices, that keep what they were told."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *args, **kwargs: self.calls.append((name, args, kwargs))


class Listing:
    """A page with a real hub that is not connected; the test reports what the daemon would."""

    def __init__(self, page, hub, context):
        self.page, self.hub, self.context = page, hub, context

    def report(self, *runs, deleted=(), is_whole=False):
        if is_whole:
            self.hub.runs.clear()
        self.hub.runs.update((run.run_id, run) for run in runs)
        for run_id in deleted:
            self.hub.runs.pop(run_id, None)
        self.hub.runs_changed.emit(RunsChange(runs, tuple(deleted), is_whole))

    @property
    def names(self):
        """What the rows show, headings of groups too."""
        model = self.page.model
        return [model.index(row, 0).data() for row in range(model.rowCount())]


@pytest.fixture
def make_listing(qtbot, tmp_path):
    def make(runs=(), size=(1100, 600), host="", state="ok"):
        hub = TelemetryAsyncHub(lambda: None)
        hub.connection = Connection(state)
        context = Context(hub, Memory(tmp_path / "gui.ini"), Theme(), None, host, Recorder(), Recorder())
        hub.runs.update((run.run_id, run) for run in runs)
        page = RunsPage(context)
        qtbot.addWidget(page)
        page.resize(*size)
        page.show()
        page.activateWindow()
        qtbot.waitUntil(page.isActiveWindow)  # keyboard shortcuts need it
        return Listing(page, hub, context)

    return make
