"""The root process of a run's tree: pid 1 of its namespace, or the subreaper above it.

    holder ──one byte per request──▶ init ──starts, signals──▶ worker and its descendants
           ◀──JSON lines────────────      ◀──orphans──────────

It is forked from the holder without an exec, so it is as small as the holder was at that moment. Its promises:
1. nothing starts before GO; when the requests end (the holder died), the tree is killed;
2. every orphan is reaped; the worker's exit status is reported once;
3. it exits only when it has no child left, or when the kernel will kill the rest with it.
"""

import gc
import json
import os
import select
import signal
import time

from mosaic.hold import kernel, spawn
from mosaic.hold.members import Members, print_stacks
from mosaic.model.shortage import is_shortage

GO, TERMINATE, AUTOPSY, KILL = b"g", b"t", b"a", b"k"
_REPEAT_KILL_S = 0.02
_REPEAT_START_S = 2.0
_DAY_S = 86400.0
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


class Init:
    def __init__(self, requests: int, reports: int, members: Members, sweep_s: float) -> None:
        self._requests = requests
        self._reports = reports
        self._members = members
        self._sweep_s = sweep_s
        self._worker = 0
        self._kill_at: float | None = None
        self._woken = _wake_on_children()

    def report(self, **what: object) -> None:
        try:
            os.write(self._reports, json.dumps(what).encode() + b"\n")
        except BrokenPipeError:
            pass  # the holder died; the next read of the requests ends the tree

    def serve(self, worker: spawn.Command) -> None:
        """Wait for GO, start the worker, and stay until no process is left."""
        if os.read(self._requests, 1) != GO:
            return
        self._members.tie_to_holder()
        if not self._start(worker):
            return
        # Only the worker's side may keep its pipes open, so that they end with it.
        for fd in worker.streams:
            os.close(fd)
        gc.enable()
        self._stay()

    def _start(self, worker: spawn.Command) -> bool:
        """Start the worker; as long as there is no process or descriptor left for it, again and again."""
        while not self._worker:
            try:
                self._worker = spawn.spawn(worker, self._prepare_worker)
            except (spawn.SpawnFailed, OSError) as error:
                if not isinstance(error, OSError) or not is_shortage(error.errno):
                    self.report(spawn_error=str(error))
                    return False
                os.write(2, f"The worker cannot be started now ({error}); trying again.\n".encode())
                # Any request, and the holder's end, means that the run is to end before it began.
                if _ready([self._requests], _REPEAT_START_S):
                    return False
        return True

    def _prepare_worker(self) -> None:
        self._members.tie_to_root()
        kernel.drop_dac_override()

    def _stay(self) -> None:
        while self._reap():
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._kill_all()
                return
            self._handle(self._wait())

    def _wait(self) -> bytes:
        """The next request; empty when only a child ended or a deadline was reached."""
        left_s = None if self._kill_at is None else self._kill_at - time.monotonic()
        ready = _ready([self._requests, self._woken], left_s)
        if self._woken in ready:
            os.read(self._woken, 4096)
        return (os.read(self._requests, 1) or KILL) if self._requests in ready else b""

    def _handle(self, request: bytes) -> None:
        if request == TERMINATE:
            self._terminate()
        elif request == AUTOPSY:
            print_stacks(self._members)
        elif request == KILL:
            self._kill_at = time.monotonic()

    def _reap(self) -> bool:
        """Reap every child that ended; False when no child is left, and so no process of the tree."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._worker:
                cpu_s = usage.ru_utime + usage.ru_stime
                self.report(status=status, max_rss_kb=usage.ru_maxrss, cpu_s=cpu_s)
                self._sweep()

    def _sweep(self) -> None:
        """The worker exited, so the run is over: the remaining processes get a short time to exit."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._sweep_s
            self._terminate()

    def _terminate(self) -> None:
        self._members.signal(signal.SIGTERM)
        self._members.signal(signal.SIGCONT)  # a stopped process handles SIGTERM only after it continues

    def _kill_all(self) -> None:
        while self._reap():
            # Repeated, because one scan of the descendants can miss a process that is just being forked.
            self._members.signal(signal.SIGKILL)
            if self._woken in _ready([self._woken], _REPEAT_KILL_S):
                os.read(self._woken, 4096)


def _wake_on_children() -> int:
    """A descriptor that becomes readable when a child ends; this process ignores all other signals."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    return woken


def _ready(fds: "list[int]", timeout_s: "float | None") -> "list[int]":
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(poll_ms(timeout_s))]


def poll_ms(timeout_s: "float | None") -> "int | None":
    """A timeout for poll(): rounded up, because 0.4 ms would spin, and a day at most, because poll() takes 31 bits."""
    return None if timeout_s is None else int(min(max(timeout_s, 0.0), _DAY_S) * 1000) + 1
