"""The ground of the adversary: one MOSAIC with two bystanders, a finished run, and victims that wait for their damage.

<home>/h/          the state root: nothing outside it is ever damaged
<home>/orders/     a FIFO per insider, and its answers
<home>/records/    what each insider printed
<home>/aside/      the originals of damaged files that all runs share
"""

import contextlib
import json
import os
import shutil
import signal
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from invariants import Witness, violations_of, violations_of_all
from lab import ROOMY, Lab, alive, all_pids, cmdline, wait_until
from schedule import CALM
from watch import descendants, still_alive

from mosaic.client import TrainerClient
from mosaic.client.run import Run
from mosaic.model import procfs
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.model.states import RunState

INSIDER = Path(__file__).with_name("insider.py")
ANSWER_WITHIN_S = 15.0  # a call, on a machine that is shared with others
START_WITHIN_S = 40.0
END_WITHIN_S = 30.0
MOST_MEMORY = 1 << 30  # bytes of the daemon, whatever a worker leaves in its folder
POOL = 2
LOOK_EVERY_S = 0.05
GRACE_S = 0.5
T = TypeVar("T")


class Hangs(Exception):
    """A call has no answer in time."""


def bounded(what: str, call: Callable[[], T], limit_s: float = ANSWER_WITHIN_S) -> T:
    """The result of the call; Hangs if it takes too long. The abandoned thread ends with this process."""
    results: list[tuple[T | None, BaseException | None]] = []

    def run() -> None:
        try:
            results.append((call(), None))
        except BaseException as error:  # noqa: BLE001 - passed on to the caller
            results.append((None, error))

    thread = threading.Thread(target=run, name=what, daemon=True)
    thread.start()
    thread.join(limit_s)
    if not results:
        raise Hangs(f"{what}: no answer within {limit_s:.0f} s")
    result, error = results[0]
    if error is not None:
        raise error
    return result  # type: ignore[return-value]


@dataclass
class Insider:
    """One run of insider.py and the way to give it orders."""

    run: Run
    orders: Path
    record: Path
    tree: dict[int, str]
    holder_pid: int = 0

    @property
    def rundir(self) -> RunDir:
        return RunDir(self.run.run_dir)

    def tell(self, order: dict[str, Any]) -> bool:
        """False if nobody listens any more."""
        try:
            fd = os.open(self.orders, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return False
        with open(fd, "w") as fifo:
            fifo.write(json.dumps(order) + "\n")
        return True

    def finish(self) -> bool:
        # The reader opens the FIFO again after each order.
        return self._repeat(lambda: self.tell({"finish": True}))

    def damage(self, kind: str, path: Path, donor: Path) -> dict[str, Any]:
        answer = self.orders.with_suffix(f".{time.monotonic_ns()}")
        order = {"kind": kind, "path": str(path), "donor": str(donor), "answer": str(answer)}
        if not self._repeat(lambda: self.tell(order)):
            raise Hangs("the insider takes no orders")
        wait_until(answer.exists, ANSWER_WITHIN_S, "the insider's answer")
        found: dict[str, Any] = json.loads(answer.read_text())
        return found

    def _repeat(self, act: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + 5
        while not act():
            if time.monotonic() > deadline or not still_alive(self.tree):
                return False
            time.sleep(0.01)
        return True


class Ground:
    def __init__(self, base: Path | None = None) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="mosaic-a-", dir=base))
        for name in ("h", "orders", "records", "aside"):
            (self.home / name).mkdir()
        self.root = StateRoot(self.home / "h")
        self.is_broken = False
        self.is_used_up = False  # damage is left in it that no other case may find
        self._count = 0
        self._pool: list[Insider] = []
        try:
            self.lab = Lab(self.root.path)
            self.finished = self._start()
            self.bystanders = [self._start() for _ in range(2)]
            self.finished.finish()
            self.wait_until_over(self.finished)
        except BaseException:
            self.clear()
            raise

    # ---- runs

    def _submit(self) -> Insider:
        self._count += 1
        orders, record = self.home / "orders" / str(self._count), self.home / "records" / str(self._count)
        os.mkfifo(orders)
        worker = {"script": str(INSIDER), "arguments": [str(orders), str(record)]}
        run = self.lab.submit_worker(worker, limits={"grace_s": GRACE_S})
        return Insider(run, orders, record, {})

    def _start(self) -> Insider:
        return self.until_it_prints(self._submit())

    def until_it_prints(self, insider: Insider) -> Insider:
        self.lab.wait_until_run(insider.run, lambda now: now.summary.events > 2 or now.state.is_over, "its first lines")
        insider.tree = descendants(insider.rundir)
        insider.holder_pid = self.lab.holder_pid(insider.run)
        return insider

    def victim(self, needed: int = POOL) -> Insider:
        """A run that prints and takes orders; others are started meanwhile, up to the number that is still needed."""
        while len(self._pool) < max(1, min(POOL, needed)):
            self._pool.append(self._submit())
        return self.until_it_prints(self._pool.pop(0))

    def give_back(self, insider: Insider) -> None:
        """It was not damaged."""
        self._pool.insert(0, insider)

    def wait_until_over(self, insider: Insider, limit_s: float = END_WITHIN_S) -> Run:
        deadline = time.monotonic() + limit_s
        while True:
            now = bounded("GetRun", lambda: self.lab.client.get_run(insider.run.run_id))
            if now.state.is_over:
                return now
            if time.monotonic() > deadline:
                raise Hangs(f"not over after {limit_s:.0f} s: {now.state} {now.telemetry} {now.life}")
            time.sleep(LOOK_EVERY_S)

    def donor(self, place: str, path_in: Callable[[RunDir], Path | None]) -> Path:
        """The same file of a live bystander, or of the finished run."""
        if place == "root.pid":
            return self.bystanders[0].rundir.owner_lock  # its text is the pid of a process that must not be killed
        for other in (self.bystanders[0], self.finished):
            path = path_in(other.rundir)
            if path and path.is_file():
                return path
        return Path("/nonexistent")

    # ---- the daemon

    def daemons(self) -> list[int]:
        """Without what a daemon has just forked: until its exec, such a process looks like a daemon."""
        mark = str(self.root.path).encode()
        lines = {pid: cmdline(pid) for pid in all_pids()}
        found = [pid for pid, line in lines.items() if b"mosaic.daemon.server" in line and mark in line and alive(pid)]
        return [pid for pid in found if not procfs.has_ancestor(pid, {*found} - {pid})]

    def kill_daemon(self) -> None:
        # Repeatedly: a tailer may just have started another.
        while pids := self.daemons():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            wait_until(lambda pids=pids: not any(map(alive, pids)), words="the daemon to exit")  # type: ignore[misc]

    def connect(self) -> None:
        """Connect to a daemon, which is started if there is none. MosaicError if it refuses."""
        with contextlib.suppress(Exception):
            bounded("close", self.lab.client.close, 5)
        self.lab.client = bounded(
            "the start of a daemon", lambda: TrainerClient.connect(self.root, options=ROOMY), START_WITHIN_S
        )

    def daemon_memory(self) -> int:
        pages = [Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in self.daemons()]
        return max((int(one) * os.sysconf("SC_PAGESIZE") for one in pages), default=0)

    # ---- what must hold at any time

    def check(self, must_grow: bool = True) -> list[str]:
        """The daemon answers in time, everybody else is listed and alive, and (`must_grow`) their lines arrive."""
        try:
            bounded("GetHealth", self.lab.client.health)
            before = {run.run_id: run for run in bounded("ListRuns", self.lab.client.list_runs).runs}
        except (Hangs, MosaicError) as error:
            self.is_broken = True
            return [f"the daemon: {type(error).__name__}: {str(error).splitlines()[0]}"]
        found = [problem for one in self.bystanders for problem in self._check_bystander(one, before, must_grow)]
        if self.finished.run.run_id not in before:
            found.append("the finished run is no longer listed")
        if self.daemon_memory() > MOST_MEMORY:
            found.append(f"the daemon uses {self.daemon_memory() >> 20} MiB")
        self.is_broken = self.is_broken or bool(found)
        return found

    def _check_bystander(self, insider: Insider, listed: dict[str, Run], must_grow: bool) -> list[str]:
        run = listed.get(insider.run.run_id)
        if run is None:
            return [f"a bystander is not listed; its processes: {still_alive(insider.tree)}"]
        if run.state.is_over or not still_alive(insider.tree):
            return [f"a bystander ended: {run.state} {run.reason.partition(chr(10))[0]}"]
        if not must_grow:
            return []
        try:
            self._wait_for_more(insider, run.summary.events)
        except (Hangs, MosaicError, AssertionError) as error:
            return [f"a bystander's lines are not stored: {error}"]
        return []

    def _wait_for_more(self, insider: Insider, events: int) -> None:
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while bounded("GetRun", lambda: self.lab.client.get_run(insider.run.run_id)).summary.events <= events:
            if time.monotonic() > deadline:
                raise Hangs(f"none after number {events} within {ANSWER_WITHIN_S:.0f} s")
            time.sleep(LOOK_EVERY_S)

    # ---- the end

    def close(self) -> list[str]:
        """End everything and judge the bystanders; nothing is left behind."""
        try:
            return self._end()
        except (Hangs, MosaicError, AssertionError) as error:
            return [f"the bystanders cannot be judged: {type(error).__name__}: {str(error).splitlines()[0]}"]
        finally:
            self.clear()

    def _end(self) -> list[str]:
        found = []
        others = [self.finished, *self.bystanders]
        for one in self.bystanders:
            one.finish()
        for one in others:
            now = self.wait_until_over(one)
            if left := still_alive(one.tree):
                found.append(f"a bystander is {now.state} and its processes {left} are alive")
        for one in self._pool:
            bounded("CancelRun", lambda run=one.run: self.lab.client.cancel_run(run.run_id))  # type: ignore[misc]
        for one in self._pool:
            self.wait_until_over(one)
        self._stop_daemon()
        for one in others:
            witness = Witness(one.run.run_id, {CALM}, [RunState.INIT], record=one.record)
            found += [f"a bystander: {problem}" for problem in violations_of(self.root, witness)]
        return found + list(violations_of_all(self.root))

    def _stop_daemon(self) -> None:
        pids = self.daemons()
        bounded("Shutdown", self.lab.client.shutdown)
        wait_until(lambda: not any(map(alive, pids)), words="the daemon to exit")

    def clear(self) -> None:
        lab = getattr(self, "lab", None)
        if lab:
            with contextlib.suppress(Exception):
                bounded("close", lab.client.close, 5)
            while pids := lab.processes():
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.01)
        remove_tree(self.home)


def remove_tree(home: Path) -> None:
    """Delete a folder whose parts may be unreadable; links are deleted, never followed."""
    for folder, names, _ in os.walk(home):
        for name in names:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if stat.S_ISDIR(os.lstat(path).st_mode):
                    os.chmod(path, 0o700)
    shutil.rmtree(home, ignore_errors=True)
