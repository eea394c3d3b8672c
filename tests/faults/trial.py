"""A trial: one schedule executed on a whole MOSAIC. Submit, inject faults, wait until all runs are over, judge."""

import contextlib
import ctypes
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import grpc
from commander import Commander
from file_faults import FILE_FAULTS
from invariants import Witness, violations_of, violations_of_all
from lab import Lab, alive, cmdline, wait_until
from live_copy import copy_live
from page_cache import dirty_pages
from preload import Preload
from schedule import (
    CALM,
    CANCELLED,
    DIED,
    KILLED,
    PRELOAD_FAULTS,
    REPORTS_FAILURE,
    SPAWN_ERROR,
    End,
    Fault,
    Habit,
    Schedule,
    ToyRun,
)
from watch import Watch, descendants, still_alive

from mosaic.client import TrainerClient
from mosaic.client.endpoint import Endpoint
from mosaic.client.run import Run
from mosaic.model.durable import read_json
from mosaic.model.errors import MosaicError, NoDaemon, NotAllowed, StoreUnavailable, UnknownRun
from mosaic.model.failpoints import POINTS, Order, read_orders
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import RunState
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.mosaic_pb2_grpc import TrainerServiceStub
from mosaic.wire.names import RUN_ID

ANSWER_WITHIN_S = 60.0
ON_DISK_WITHIN_S = 3.0  # the kernel writes dirty pages on its own after 5 s at the earliest
EXIT_WITHIN_S = 20.0
READY_WITHIN_S = 2.0
BROKEN_FOR_S = 0.5
HOUR_S = 3600
SMALL_DISK, LARGER_DISK = b"size=32m", b"size=64m"
MS_REMOUNT = 32
LIBC = ctypes.CDLL(None, use_errno=True)
# A holder that is killed at one of these points ends its run; before them the run is launched again.
FATAL_TO_THE_RUN = ("hold.started", "hold.going", "exit.proven")
T = TypeVar("T")


@dataclass
class Report:
    """The result of one trial."""

    schedule: Schedule
    violations: list[str] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)  # faults, and failpoints as `name:action`
    readopted_s: list[float] = field(default_factory=list)
    wall_s: float = 0.0
    kept: str = ""  # the folder of a trial with violations


def run_trial(schedule: Schedule, keep: bool = False, python_path: str = "") -> Report:
    """Execute the schedule in a folder of its own. `keep`: keep the folder of a trial with violations."""
    report = Report(schedule)
    began = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="mosaic-f-"))
    try:
        preload = Preload(home) if schedule.needs_preload else None
        with _variables(schedule, home, python_path, preload), _disk(schedule, home / "h"):
            Trial(schedule, home, report, preload).run()
    except Exception as error:  # noqa: BLE001 - the edge: a trial that cannot continue has found a problem
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno} {where.line}"
        report.violations.append(f"the trial could not continue: {type(error).__name__}: {error} (at {place})")
    report.wall_s = time.monotonic() - began
    if report.violations and keep:
        report.kept = str(home)
    else:
        shutil.rmtree(home, ignore_errors=True)
    return report


@contextlib.contextmanager
def _variables(schedule: Schedule, home: Path, python_path: str, preload: Preload | None) -> Iterator[None]:
    (home / "failpoints").mkdir()
    (home / "records").mkdir()
    wanted = {
        "MOSAIC_FAILPOINTS": schedule.failpoints,
        "MOSAIC_FAILPOINTS_DIR": str(home / "failpoints"),
        "MOSAIC_GPUS": str(schedule.gpus),
    }
    if python_path:
        wanted["PYTHONPATH"] = python_path
    if preload:
        wanted |= preload.variables
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _disk(schedule: Schedule, path: Path) -> Iterator[None]:
    """The folder of the state root; on a small file system for a schedule that fills it."""
    path.mkdir()
    is_mounted = schedule.has_small_disk and not LIBC.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, SMALL_DISK)
    try:
        yield
    finally:
        if is_mounted:
            if kept := next(path.glob("trainer"), None):
                copy_live(kept, path.parent / "trainer")
            LIBC.umount2(os.fsencode(path), 2)


def may_mount() -> bool:
    """Whether this user may mount a small file system."""
    if os.geteuid():
        return False
    with tempfile.TemporaryDirectory() as path:
        refused = LIBC.mount(b"tmpfs", os.fsencode(path), b"tmpfs", 0, SMALL_DISK)
        return not refused and not LIBC.umount2(os.fsencode(path), 2)


class Trial:
    def __init__(self, schedule: Schedule, home: Path, report: Report, preload: Preload | None = None) -> None:
        self.schedule = schedule
        self.preload = preload
        self.report = report
        self.home = home
        self.root = StateRoot(home / "h")
        self.runs: list[Run] = []
        self.witnesses: list[Witness] = []
        self.clients: list[subprocess.Popen[bytes]] = []
        self.commanders: dict[int, Commander] = {}
        self.deleted: list[int] = []
        self.daemons_killed = 0
        self.lab = self._retry(lambda: Lab(self.root.path))

    def run(self) -> None:
        try:
            with Watch(self.lab, self.schedule.stopped_for_s, self.home, self.report.violations) as watch:
                for number, toy in enumerate(self.schedule.runs):
                    self._submit(number, toy)
                for fault in self.schedule.faults:
                    time.sleep(fault.pause_s)
                    self._do(replace(fault, run=self._victim(fault.run)))
                self._wait_until_all_are_over()
                self._dismiss_commanders()
                for number in self.deleted:
                    self._delete(number)
                self._check_that_no_process_is_left(watch)
            self._stop_daemon()
            self._judge()
        finally:
            self._close()

    # Requests

    def ask(self, question: Callable[[Lab], T]) -> T:
        """The reply of any daemon: a client retries when the first one was killed."""
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while True:
            try:
                return question(self.lab)
            except (NoDaemon, StoreUnavailable) as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no answer within {ANSWER_WITHIN_S:.0f} s: {error}") from error
                if isinstance(error, NoDaemon):
                    self._connect()
                else:
                    time.sleep(0.1)

    def _connect(self) -> None:
        with contextlib.suppress(RuntimeError):  # already closed, if the last connect failed
            self.lab.client.close()
        self.lab.client = self._retry(lambda: TrainerClient.connect(self.root))

    def _retry(self, start: Callable[[], T]) -> T:
        """Retry: the failpoint may be in the start of a daemon, or the disk may be full."""
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while True:
            try:
                return start()
            except MosaicError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no daemon within {ANSWER_WITHIN_S:.0f} s: {error}") from error

    def _submit(self, number: int, toy: ToyRun) -> None:
        record = self.home / "records" / str(number)
        worker = {"module": "toy_worker.cli", "config": toy.keys | {"record": str(record)}}
        worker |= {"commands": True} if toy.habit.takes_commands else {}
        resources = {"gpus": {"requested": toy.gpus, "mandatory": True}} if toy.gpus else {}
        config = {"metadata": {"worker": worker}, "payload": {"limits": toy.habit.limits, "resources": resources}}
        run = self.ask(lambda lab: lab.client.submit_run(config, f"run {number}"))
        self.runs.append(run)
        may_lose = self.schedule.may_lose_lines
        self.witnesses.append(Witness(run.run_id, {toy.habit.end}, [run.state], record=record, may_lose_lines=may_lose))
        Path(f"/dev/shm/mosaic.fastlane.{run.run_id}").touch()
        self._check_durability(number)
        if toy.habit.takes_commands:
            self.commanders[number] = Commander(self.root, run.run_id)

    def _check_durability(self, number: int) -> None:
        """What was acknowledged must survive a power cut."""
        pid, deadline = self._daemon_pid(), time.monotonic() + ON_DISK_WITHIN_S
        files = (Path(f"{self.root.registry}-wal"), self.root.config_file(self.runs[number].run_id))
        while in_memory := [path.name for path in files if dirty_pages(path)]:
            # A later commit is not acknowledged yet, and a daemon that is killed during one leaves dirty pages.
            if time.monotonic() > deadline and pid == self._daemon_pid():
                self.report.violations.append(f"run {number}: its submit was answered; only in memory: {in_memory}")
                return
            if time.monotonic() > deadline:
                return
            time.sleep(0.005)

    def look(self, number: int) -> Run:
        now = self.ask(lambda lab: lab.client.get_run(self.runs[number].run_id))
        seen = self.witnesses[number].seen
        if seen[-1] is not now.state:
            seen.append(now.state)
        return now

    def rundir(self, number: int) -> RunDir:
        return RunDir(self.runs[number].run_dir)

    # Faults

    def _victim(self, number: int) -> int:
        """The chosen run, or the next one that has not ended: a fault has no effect on a dead run."""
        order = [*range(number, len(self.runs)), *range(number)]
        return next((n for n in order if not self.has_ended(n)), number)

    def has_ended(self, number: int) -> bool:
        """By its exit.json; a special file that the trial has put there is not one."""
        return read_json(self.rundir(number).exit) is not None

    def _do(self, fault: Fault) -> None:
        verb, _, victim = fault.kind.partition(" ")
        acts: dict[str, Callable[[], bool]] = {
            "cancel": lambda: self._cancel(fault.run),
            "delete": lambda: self._delete_later(fault.run),
            "kill client": lambda: self._signal_client(fault.run, signal.SIGKILL),
            "slow client": lambda: self._signal_client(fault.run, signal.SIGSTOP),
            "stale files": self._leave_stale_files,
            "torn tails": lambda: self._tear(fault.run),
            "full disk": self._fill_disk,
            "intruder": lambda: self._intrude(fault.run),
            "kill daemon": lambda: self._kill_daemon(fault.run),
            "kill daemon between commands": self._kill_daemon_between_commands,
        }
        acts |= {kind: functools.partial(self._preload, kind) for kind in PRELOAD_FAULTS}
        acts |= {kind: functools.partial(act, self, fault.run) for kind, act in FILE_FAULTS.items()}
        number = signal.SIGKILL if verb == "kill" else signal.SIGSTOP
        act = acts.get(fault.kind) or (lambda: self._signal(fault.run, victim, number))
        self.report.done[fault.kind if act() else f"{fault.kind} (too late)"] += 1

    def _signal(self, number: int, victim: str, what: signal.Signals) -> bool:
        self._wait_for(number, lambda: bool(self._pid(number, victim)))
        pid = self._pid(number, victim)
        if not pid:
            return False
        if what is signal.SIGKILL and victim == "holder":
            self.witnesses[number].may_end.add(DIED)
        if what is signal.SIGKILL and victim == "worker":
            self.witnesses[number].may_end.add(KILLED)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)
            return True
        return False

    def _wait_for(self, number: int, ready: Callable[[], bool]) -> None:
        """Wait a moment until the run is ready for the fault; if it does not get there, inject the fault anyway."""
        deadline = time.monotonic() + READY_WITHIN_S
        while not ready() and not self.has_ended(number) and time.monotonic() < deadline:
            time.sleep(0.02)

    def _pid(self, number: int, victim: str) -> int:
        """The pid of a live process; 0 when there is none (yet, or any more)."""
        started = read_json(self.rundir(number).started) or {}
        match victim:
            case "daemon":
                pid = self._daemon_pid()
            case "holder":
                pid = int(started.get("holder_pid", 0))
                is_it = b"hold/__main__.py" in cmdline(pid) if pid else False
                return pid if is_it else 0
            case "tailer":
                pid = next(iter(self.lab._tailers(self.runs[number])), 0)
            case _:
                pid = next(iter([*descendants(self.rundir(number))][1:]), 0)
        return pid if pid and alive(pid) else 0

    def _daemon_pid(self) -> int:
        mark = str(self.root.path).encode()
        found = [pid for pid in self.lab.processes() if b"mosaic.daemon.server" in cmdline(pid)]
        return next((pid for pid in found if mark in cmdline(pid)), 0)

    def _kill_daemon(self, number: int) -> bool:
        """Kill it, start another, and measure the time until the next row of a live run is committed."""
        self._wait_for(number, lambda: self._rows(number) > 0)
        pid = self._daemon_pid()
        if not pid:
            return False
        self._kill_this_daemon(pid)
        before = self._rows(number)
        self._connect()
        self._time_readoption(number, before)
        return True

    def _kill_daemon_between_commands(self) -> bool:
        """Kill it right after it has acknowledged a command, and leave half of the next one in the file."""
        busy = [number for number, commander in self.commanders.items() if commander.is_alive()]
        if not busy:
            return False
        commander = self.commanders[busy[0]]
        before = len(commander.acknowledged)
        self._wait_for(busy[0], lambda: len(commander.acknowledged) > before)
        pid = self._daemon_pid()
        if not pid:
            return False
        self._kill_this_daemon(pid)
        with open(self.rundir(busy[0]).commands, "ab") as file:
            file.write(b'{"seq": 1000, "id": "torn", "cmd": "st')
        self._connect()
        return True

    def _kill_this_daemon(self, pid: int) -> None:
        self.daemons_killed += 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not alive(pid), words="the daemon to exit")

    def _time_readoption(self, number: int, before: int) -> None:
        locked_at = self.root.pid.stat().st_mtime
        is_printing = (read_json(self.rundir(number).started) or {}) and not self.has_ended(number)
        deadline = time.monotonic() + 5
        while before and is_printing and time.monotonic() < deadline and not self.has_ended(number):
            if self._rows(number) > before:
                self.report.readopted_s.append(max(0.0, time.time() - locked_at))
                return
            time.sleep(0.01)

    def _rows(self, number: int) -> int:
        with contextlib.suppress(Exception):
            return int(self.lab.table(self.runs[number], "SELECT sum(next_offset) FROM cursor")[0][0])
        return 0

    def _cancel(self, number: int) -> bool:
        answer = self.ask(lambda lab: lab.client.cancel_run(self.runs[number].run_id))
        self.witnesses[number].may_end.add(CANCELLED)
        if not answer.state.is_over:
            self.witnesses[number].cancel_answered = True
        return not answer.state.is_over

    def _signal_client(self, number: int, what: signal.Signals) -> bool:
        command = [sys.executable, "-m", "mosaic.cli.main", "logs", "-f", self.runs[number].run_id]
        env = os.environ | {"MOSAIC_HOME": str(self.root.path)}
        client = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.clients.append(client)
        time.sleep(0.3)  # while it starts or streams
        client.send_signal(what)
        return True

    def _leave_stale_files(self) -> bool:
        """Kill the daemon and leave a pid file with the pid of another process and a socket without a listener."""
        pid = self._daemon_pid()
        if pid:
            self._kill_this_daemon(pid)
        self.root.pid.write_text(f"{os.getpid()}\n")
        (self.root.trainer / "daemon.pid.99999.tmp").write_bytes(b"")
        self._connect()
        return bool(pid)

    def _tear(self, number: int) -> bool:
        """Kill daemon and holder together, and cut what they were writing in the middle."""
        self._wait_for(number, lambda: bool(self._pid(number, "worker")))
        rundir, daemon = self.rundir(number), self._daemon_pid()
        tree = descendants(rundir)
        holder = self._pid(number, "holder")
        if not (holder and tree and daemon):
            return False
        os.kill(holder, signal.SIGKILL)
        self._kill_this_daemon(daemon)
        self.witnesses[number].may_end.add(DIED)
        wait_until(lambda: not still_alive(tree), words="the end of the torn run's tree")
        if read_json(rundir.exit) is None:
            rundir.exit.unlink(missing_ok=True)  # it may be a FIFO
            rundir.exit.write_bytes(b'{"version": 1, "atte')
            rundir.stdout.chmod(0o600)  # the mode protects it from the worker
            with open(rundir.stdout, "ab") as spool:
                spool.write(b'{"event_type":"step","step_ind')
            self.witnesses[number].spool_was_torn = True
        for wal in (Path(f"{self.root.registry}-wal"), Path(f"{rundir.telemetry}-wal")):
            if wal.exists():
                with open(wal, "ab") as file:
                    file.write(b"\x5a" * 1000)  # an unfinished frame
        self._connect()
        return True

    def _fill_disk(self) -> bool:
        ballast = self.root.path / "ballast"
        with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
            while file.write(bytes(65536)):
                pass
        time.sleep(BROKEN_FOR_S)
        with contextlib.suppress(OSError):
            ballast.unlink()
        self._grow_disk()
        return True

    def _grow_disk(self) -> None:
        """The runs themselves may have filled it, and then no space was freed."""
        LIBC.mount(b"tmpfs", os.fsencode(self.root.path), b"tmpfs", MS_REMOUNT, LARGER_DISK)

    def _preload(self, kind: str) -> bool:
        """The clock stays as set; the disk works again after a moment."""
        assert self.preload
        error, where = PRELOAD_FAULTS[kind]
        if not error:
            self.preload.set_clock(HOUR_S if kind == "clock forward" else -HOUR_S)
            return True
        with self.preload.broken(error, where):
            time.sleep(BROKEN_FOR_S)
        return True

    def _intrude(self, number: int) -> bool:
        """A client with a wrong token sends a cancel and telemetry of its own."""
        run_id, target = self.runs[number].run_id, self.lab.client.target
        with contextlib.suppress(NotAllowed, NoDaemon), TrainerClient.at(Endpoint(target, "wrong")) as intruder:
            intruder.cancel_run(run_id)
            self.report.violations.append(f"run {number}: a cancel with a wrong token was accepted")
        request = pb.PublishTelemetryRequest(run_id=run_id, start=0, end=0, drained=True)
        with contextlib.suppress(grpc.RpcError), grpc.insecure_channel(target) as channel:
            metadata = [("authorization", "Bearer wrong"), (RUN_ID, run_id)]
            next(TrainerServiceStub(channel).PublishTelemetry(iter([request]), timeout=10, metadata=metadata))  # type: ignore[no-untyped-call]
            self.report.violations.append(f"run {number}: a publish with a wrong token was accepted")
        return True

    def _delete_later(self, number: int) -> bool:
        """Only a run that is over can be deleted, so this is done when all are over."""
        if number not in self.deleted:
            self.deleted.append(number)
        return True

    # The end

    def _wait_until_all_are_over(self) -> None:
        deadline = time.monotonic() + self.schedule.over_within_s
        waiting = set(range(len(self.runs)))
        while waiting:
            waiting = {number for number in waiting if not self.look(number).state.is_over}
            if waiting and time.monotonic() > deadline:
                now = [f"{self.runs[n].run_id} {self.look(n).state} {self.look(n).telemetry}" for n in waiting]
                raise TimeoutError(f"not over after {self.schedule.over_within_s:.0f} s: {now}")
            time.sleep(0.05)

    def _dismiss_commanders(self) -> None:
        for number, commander in self.commanders.items():
            commander.join(ANSWER_WITHIN_S)
            self.witnesses[number].acknowledged = list(commander.acknowledged)
            self.witnesses[number].takes_commands = True
            if commander.is_alive() or commander.problem:
                self.report.violations.append(f"run {number}: {commander.problem or 'a command has no answer'}")

    def _delete(self, number: int) -> None:
        """Judge the run first: afterwards nothing is left of it."""
        self._wait_for_the_tailer(number)
        self._judge_run(number)
        with contextlib.suppress(UnknownRun):  # retried after a kill: it is already deleted
            self.ask(lambda lab: lab.client.delete_run(self.runs[number].run_id))
        self.witnesses[number].is_deleted = True

    def _wait_for_the_tailer(self, number: int) -> None:
        mark = self.runs[number].run_id.encode()

        def is_gone() -> bool:
            self._need_daemon()
            return not [p for p in self.lab.processes() if mark in cmdline(p) and b"mosaic.tail" in cmdline(p)]

        wait_until(is_gone, EXIT_WITHIN_S, "the tailer of a run that is over to exit")

    def _need_daemon(self) -> None:
        """A failpoint may have killed it after the last reply, and a tailer waits for the next one."""
        if not self._daemon_pid():
            self._connect()

    def _check_that_no_process_is_left(self, watch: Watch) -> None:
        for client in self.clients:
            client.kill()
            client.wait()
        ours = {client.pid for client in self.clients}

        def left() -> list[int]:
            self._need_daemon()
            return [pid for pid in self.lab.processes() if pid not in ours and pid != self._daemon_pid()]

        try:
            wait_until(lambda: not left(), EXIT_WITHIN_S)
        except AssertionError:
            lines = [cmdline(pid).replace(b"\0", b" ").decode(errors="replace") for pid in left()]
            self.report.violations.append(f"all runs are over and these processes are alive: {lines}")
        for run_id, tree in watch.trees().items():
            if alive_ones := still_alive(tree):
                self.report.violations.append(f"{run_id} is over and its processes {alive_ones} are alive")

    def _stop_daemon(self) -> None:
        pid = self._daemon_pid()
        self.ask(lambda lab: lab.client.shutdown())
        wait_until(lambda: not pid or not alive(pid), words="the daemon to exit")

    # Judging

    def _judge(self) -> None:
        self._note_failpoints()
        self._judge_daemons()
        for number in range(len(self.runs)):
            self._judge_run(number)
        self.report.violations += violations_of_all(self.root)

    def _judge_daemons(self) -> None:
        """A daemon ends only when it is killed or stopped."""
        starts = self.root.daemon_log.read_text(errors="replace").count(f" serves {self.root.path} at ")
        killed = [name for name, order in self._acted() if order.action == "kill" and POINTS[name].startswith("daemon")]
        if starts > 1 + self.daemons_killed + len(killed):
            self.report.violations.append(
                f"{starts} daemons served, and {self.daemons_killed + len(killed)} were killed"
            )

    def _judge_run(self, number: int) -> None:
        if self.schedule.has_small_disk:  # SQLite needs room to read
            self._grow_disk()
        witness = self.witnesses[number]
        excused = witness.may_end | self._excuses(self.schedule.runs[number].habit)
        for violation in violations_of(self.root, replace(witness, may_end=excused)):
            self.report.violations.append(f"run {number} ({self.schedule.runs[number].habit.name}): {violation}")

    def _excuses(self, habit: Habit) -> set[End]:
        """Final states that the failpoints that acted may have caused."""
        excuses = set()
        for name, order in self._acted():
            if name in FATAL_TO_THE_RUN and order.action == "kill":
                excuses.add(DIED)
            if order.action in ("full", "eio") and name in ("spawn.planned", "hold.owned", "hold.tree"):
                excuses.add(SPAWN_ERROR)
        if self.schedule.may_lose_lines:
            # A library's own print fails on such a disk, as it would with any log file.
            excuses |= {SPAWN_ERROR, (RunState.FAULTED, "exit code")}
            # Its run_failed may be among the lost lines; then its exit code 0 decides.
            excuses |= {CALM} if habit.end is REPORTS_FAILURE else set()
        return excuses

    def _acted(self) -> Iterator[tuple[str, Order]]:
        for name, order in read_orders(self.schedule.failpoints).items():
            visits = self.home / "failpoints" / name
            if visits.exists() and visits.stat().st_size > order.skip:
                yield name, order

    def _note_failpoints(self) -> None:
        for name, order in self._acted():
            self.report.done[f"{name}:{order.action}"] += 1

    def _close(self) -> None:
        for run in self.runs:
            Path(f"/dev/shm/mosaic.fastlane.{run.run_id}").unlink(missing_ok=True)
        with contextlib.suppress(RuntimeError):
            self.lab.client.close()
        # Twice: a tailer that is being killed may have been restarted.
        for pid in [*self.lab.processes(), *self.lab.processes()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
