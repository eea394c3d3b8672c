"""The tailer (mosaic.tail) as a child of the holder: it is restarted until it exits with code 0."""

import os
from collections.abc import Callable

from mosaic.hold.spawn import Command, SpawnFailed, spawn
from mosaic.model import procfs

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0


class TailerChild:
    def __init__(self, command: "Command | None", say: "Callable[[str], None]") -> None:
        self._command = command
        self._say = say
        self._pid = 0
        self._pause_s = FIRST_PAUSE_S
        self._started_at = 0.0
        self.next_at: float | None = 0.0 if command else None  # when to start it (again)
        self.is_done = command is None

    def supervise(self, now: float) -> None:
        """Reap it when it has ended, and start it when that is due."""
        if self._pid:
            self._reap(now)
        if self.next_at is not None and now >= self.next_at:
            self._start(now)

    def family(self) -> "set[int]":
        """Itself and what it started (perhaps a daemon): not part of the run's tree."""
        return {self._pid, *procfs.descendants(self._pid)} if self._pid else set()

    def _start(self, now: float) -> None:
        assert self._command is not None
        self.next_at = None
        self._started_at = now
        try:
            self._pid = spawn(self._command, lambda: None)
        except (SpawnFailed, OSError) as error:
            self._restart_later(now, str(error))

    def _reap(self, now: float) -> None:
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        if not pid:
            return
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            self.is_done = True
        else:
            self._restart_later(now, procfs.signal_name(-code) if code < 0 else f"exit code {code}")

    def _restart_later(self, now: float, why: str) -> None:
        if now - self._started_at > LONGEST_PAUSE_S:
            self._pause_s = FIRST_PAUSE_S  # it worked for a while, so this is a new problem
        self._say(f"The tailer exited ({why}); restarting it in {self._pause_s:g} s.")
        self.next_at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
