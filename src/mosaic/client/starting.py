"""Starting a daemon for this state root, when nobody answers."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from mosaic.model.errors import NoDaemon
from mosaic.model.rundir import StateRoot

ANSWER_WITHIN_S = 20.0
LOCK_IS_HELD = 3  # exit code of a daemon that found another one at work


def may_start() -> bool:
    """Inside a run nobody starts a daemon: it would die with the run's process tree. The run's tailer starts one."""
    return "MOSAIC_RUN_ID" not in os.environ


def command(root: StateRoot, options: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-m", "mosaic.daemon.server", "--root", str(root.path), *options]


class StartedDaemon:
    """A daemon on its way up, in a session of its own, so that a closed terminal does not end it."""

    def __init__(self, root: StateRoot, options: Sequence[str] = ()) -> None:
        self._root = root
        self._deadline = time.monotonic() + ANSWER_WITHIN_S
        self._log_start = 0
        try:
            self._process = self._spawn(options)
        except OSError as error:
            raise NoDaemon(f"{root.path} cannot be used ({error.strerror}). Set MOSAIC_HOME elsewhere.") from None

    def check(self) -> None:
        """Raise when it will not answer any more: it ended, or took too long."""
        code = self._process.poll()
        if code is not None and code != LOCK_IS_HELD:
            raise NoDaemon(f"The daemon ended at its start (exit code {code}).{self._last_lines()}")
        if time.monotonic() > self._deadline:
            raise NoDaemon(f"The daemon did not answer within {ANSWER_WITHIN_S:.0f} s.{self._last_lines()}")

    def _spawn(self, options: Sequence[str]) -> "subprocess.Popen[bytes]":
        log_file = self._root.daemon_log
        self._root.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        log_file.parent.mkdir(mode=0o700, exist_ok=True)
        with open(log_file, "ab") as log:
            self._log_start = log.tell()
            return subprocess.Popen(
                command(self._root, options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",  # keeps no folder of the user's busy
            )

    def _last_lines(self, count: int = 8) -> str:
        try:
            with open(self._root.daemon_log, "rb") as log:
                log.seek(self._log_start)
                lines = log.read().decode(errors="replace").splitlines()[-count:]
        except OSError:
            lines = []
        told = "".join(f"\n  {line}" for line in lines)
        return f" Its log {self._root.daemon_log} ends with:{told}" if told else f" Its log: {self._root.daemon_log}"
