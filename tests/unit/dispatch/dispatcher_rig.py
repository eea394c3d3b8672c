"""A dispatcher on a real registry and a real ingest, with a clock and a launcher that the test controls."""

import asyncio
import os
import shutil
import sqlite3
from types import SimpleNamespace

from mosaic.broadcast.subscribers import Broadcaster
from mosaic.catalog.workers import Catalog
from mosaic.dispatch.dispatcher import Dispatcher
from mosaic.dispatch.gpus import Gpus
from mosaic.dispatch.launcher import Launchers, Sight, Stage, Stop
from mosaic.dispatch.live_runs import LiveRuns
from mosaic.ingest.index import Index
from mosaic.ingest.receive import Ingest
from mosaic.model import durable
from mosaic.model.machine import Machine
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState
from mosaic.model.ulid import new_ulid
from mosaic.registry.thread import RegistryThread
from mosaic.submit.config import read_config
from mosaic.submit.record import record as record_submission
from mosaic.wire import mosaic_pb2 as pb

STEP_S = 8.0  # between two turns: less than what counts as time in which the daemon was stopped


class FakeClock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class FakeLauncher:
    """`Launcher` without processes: the test decides which holders live and what can be killed."""

    def __init__(self):
        self.launched = []  # (run id, attempt)
        self.on_launch = lambda rundir, launch: None
        self.starting, self.held, self.unkillable, self.locked = set(), set(), set(), set()
        self.living = set()  # whose root process is alive
        self.stopped, self.autopsied, self.cleaned, self.tailed, self.forgotten = [], [], [], [], []
        self.cpu, self.lacking = 0.0, {}

    def submit(self, ref, launch):
        self.on_launch(ref.rundir, launch)
        durable.write_json(ref.rundir.launch, launch)
        self.launched.append((ref.rundir.run_id, launch["attempt"]))
        return ""

    def begin(self, ref):
        return ""

    def find(self, ref):
        return None

    def look(self, ref):
        run_id = ref.rundir.run_id
        if run_id in self.held:
            return Sight(Stage.RUNNING)
        return Sight(Stage.STARTING) if run_id in self.starting else Sight(Stage.ABSENT, self.lacking.get(run_id, ""))

    def watch(self, ref, wake):
        pass

    def stop(self, ref, how=Stop.TERM):
        run_id = ref.rundir.run_id
        if how is Stop.AUTOPSY:
            self.autopsied.append(run_id)
            return True
        if run_id in self.held:
            self.stopped.append(run_id)
        return run_id in self.held

    def fence(self, ref):
        return None if ref.rundir.run_id in self.locked else os.open(os.devnull, os.O_RDONLY)

    def lives(self, ref, started):
        return ref.rundir.run_id in self.living

    def settle(self, ref, started):
        self.cleaned.append(ref.rundir.run_id)
        self.living.discard(ref.rundir.run_id)
        return ref.rundir.run_id not in self.unkillable

    def forget(self, ref):
        self.forgotten.append(ref.rundir.run_id)

    def is_untailed(self, rundir):
        return False

    def drain(self, ref):
        self.tailed.append(ref.rundir.run_id)

    def cpu_s(self, ref):
        return self.cpu

    def roots(self):
        return []


class Rig:
    def __init__(self, home, gpus=0, max_runs=8, cpus=8.0):
        self.root = StateRoot(home)
        self.root.make()
        self.script = home / "train.py"
        self.script.write_text("")
        self.clock, self.launcher = FakeClock(), FakeLauncher()
        self.gpus, self.max_runs, self.cpus = gpus, max_runs, cpus
        self.loop = asyncio.Runner()
        self._build()

    def _build(self):
        self.runs = LiveRuns(self.clock)
        self.registry = RegistryThread(self.root.registry)
        broadcaster = Broadcaster()
        self.ingest = Ingest(broadcaster, Index(self.root.index), self.runs, threads=1)
        self.dispatcher = Dispatcher(
            root=self.root,
            registry=self.registry,
            ingest=self.ingest,
            broadcaster=broadcaster,
            catalog=Catalog(self.root),
            local=self.launcher,
            launchers=Launchers(self.launcher),
            gpus=Gpus(self.gpus),
            machine=Machine(cpus=self.cpus, memory_mb=8192),
            max_runs=self.max_runs,
            addresses=SimpleNamespace(unix="unix:daemon.sock", tcp=""),
            runs=self.runs,
        )

    def close(self):
        self.loop.run(self.ingest.close())
        self.registry.close()
        self.loop.close()

    def restart(self):
        """Another daemon on the same root, which knows only what is on disk."""
        self.loop.run(self.ingest.close())
        self.registry.close()
        self._build()

    # ---- the daemon's side

    def submit(self, limits=None, gpus=0, on=""):
        run_id = new_ulid()
        document = {
            "metadata": {"run_id": run_id, "run_name": "train", "worker": {"script": str(self.script)}},
            "payload": {
                "limits": limits or {},
                "resources": {"gpus": {"requested": gpus, "mandatory": bool(gpus)}},
                **({"on": on} if on else {}),
            },
        }
        config = read_config(document)
        record_submission(self.root, config)
        self.ask(lambda r: r.add(config))
        return run_id

    def turn(self):
        self.loop.run(self.dispatcher.turn())

    def wait(self, seconds):
        """Let time pass as for a running daemon: with a turn every few seconds."""
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now = min(end, self.clock.now + STEP_S)
            self.turn()

    def ask(self, question):
        return self.loop.run(self.registry.do(question))

    def get(self, run_id):
        return self.ask(lambda r: r.get(run_id))

    def cancel(self, run_id):
        self.ask(lambda r: r.request_cancel(run_id))

    def rundir(self, run_id):
        return self.root.run("custom_scripts", run_id)

    def state_on_disk(self, run_id):
        """What another process would find in the registry now."""
        with sqlite3.connect(self.root.registry) as db:
            return db.execute("SELECT state, attempt FROM runs WHERE id = ?", (run_id,)).fetchone()

    # ---- the holder's side

    def hold(self, run_id):
        """The holder takes its lock and starts the worker."""
        attempt = self.get(run_id).attempt
        self.launcher.starting.discard(run_id)
        self.launcher.held.add(run_id)
        self.launcher.living.add(run_id)
        rundir = self.rundir(run_id)
        for path in (rundir.stdout, rundir.stderr):
            path.touch()
        started = {"attempt": attempt, "held_by": "pid namespace", "root_pid": 1}
        secret = (durable.read_json(rundir.launch) or {}).get("secret", "")
        durable.write_json(rundir.started, {**started, "secret": secret})

    def print(self, run_id, text):
        """The worker prints: into the spool, where it stays until its tailer reads it."""
        with self.rundir(run_id).stdout.open("ab") as file:
            file.write(text)

    def exit(self, run_id, exit_code=0, **facts):
        """The worker ends, and its holder after it."""
        rundir = self.rundir(run_id)
        sizes = {"stdout_bytes": rundir.stdout.stat().st_size, "stderr_bytes": rundir.stderr.stat().st_size}
        exit = {"attempt": self.get(run_id).attempt, "exit_code": exit_code, "signal": None, "ended_by": "", **sizes}
        secret = durable.read_json(rundir.launch)["secret"]
        durable.write_json(rundir.exit, {**exit, "secret": secret, **facts})
        self.launcher.living.discard(run_id)
        self.launcher.held.discard(run_id)

    def exit_as_far_as_possible(self, run_id):
        """The worker ends after it has damaged its folder: the holder still knows what it printed."""
        rundir = self.rundir(run_id)
        exit = {"attempt": self.get(run_id).attempt, "exit_code": 0, "signal": None, "ended_by": ""}
        secret = (durable.read_json(rundir.launch) or {}).get("secret", "")
        durable.insist_on_json(rundir.exit, {**exit, "stdout_bytes": 10, "stderr_bytes": 0, "secret": secret})
        self.launcher.living.discard(run_id)
        self.launcher.held.discard(run_id)

    def kill_holder(self, run_id):
        self.launcher.held.discard(run_id)

    def delete_folder(self, run_id):
        shutil.rmtree(self.rundir(run_id).path)

    # ---- the tailer's side

    def register(self, run_id):
        self.ask(lambda r: r.move(run_id, RunState.READY))
        self.loop.run(self.ingest.open(run_id, self.rundir(run_id)))

    def tail(self, run_id, *events, most=1 << 20, **flags):
        """Publish what the worker has printed and the store does not have, at most so many bytes of it."""
        rundir = self.rundir(run_id)
        start = self.loop.run(self.ingest.open(run_id, rundir)).stdout_offset
        text = rundir.stdout.read_bytes()[start : start + most]
        request = pb.PublishTelemetryRequest(
            run_id=run_id, stream=pb.STDOUT, start=start, end=start + len(text), events=events, **flags
        )
        if text and not events:
            request.texts.add(stream=pb.STDOUT, offset=start, text=text)
        self.loop.run(self.ingest.publish(rundir, request))

    # ---- both

    def running(self, **submitted):
        """A run in READY whose holder and tailer are running."""
        run_id = self.submit(**submitted)
        self.turn()
        self.hold(run_id)
        self.register(run_id)
        self.turn()
        return run_id

    def over(self, run_id):
        """The state and the first line of the reason of a run that must be over."""
        record = self.get(run_id)
        assert record.state.is_over, record
        return record.state, record.reason.partition("\n")[0]
