"""Starting a daemon for a state folder if none answers."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mosaic.model.durable import open_regular
from mosaic.model.errors import NoDaemon
from mosaic.model.rundir import StateRoot

ANSWER_WITHIN_S = 20.0
LONGEST_SHOWN = 64 << 10
LOCK_IS_HELD = 3  # exit code of a daemon that found another one running


def may_start() -> bool:
    """False inside a run: the daemon would die with the run's process tree. The run's tailer starts one instead."""
    return "MOSAIC_RUN_ID" not in os.environ


def command(root: StateRoot, options: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-m", "mosaic.daemon.server", "--root", str(root.path), *options]


class StartedDaemon:
    """A daemon that is starting, in its own session, so that closing the terminal does not end it."""

    def __init__(self, root: StateRoot, options: Sequence[str] = ()) -> None:
        self._root = root
        self._deadline = time.monotonic() + ANSWER_WITHIN_S
        self._log_start = 0
        try:
            self._process = self._spawn(options)
        except OSError as error:
            raise NoDaemon(f"{root.path} cannot be used ({error.strerror}). Set MOSAIC_HOME elsewhere.") from None

    def check(self) -> None:
        """Raise NoDaemon if the daemon exited or takes too long."""
        code = self._process.poll()
        if code is not None and code != LOCK_IS_HELD:
            raise NoDaemon(f"The daemon exited while it was starting (exit code {code}).{self._last_lines()}")
        if time.monotonic() > self._deadline:
            raise NoDaemon(f"The daemon did not answer within {ANSWER_WITHIN_S:.0f} s.{self._last_lines()}")

    def _spawn(self, options: Sequence[str]) -> "subprocess.Popen[bytes]":
        log_file = self._root.daemon_log
        self._root.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        log_file.parent.mkdir(mode=0o700, exist_ok=True)
        with open(_open_log(log_file), "ab") as log:
            self._log_start = log.tell()
            return subprocess.Popen(
                command(self._root, options),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",  # so that none of the user's folders is in use
            )

    def _last_lines(self, count: int = 8) -> str:
        try:
            with open(open_regular(self._root.daemon_log), "rb") as log:
                # From the start of this daemon; from a later place if it has written a lot.
                log.seek(max(self._log_start, log.seek(0, os.SEEK_END) - LONGEST_SHOWN))
                lines = log.read(LONGEST_SHOWN).decode(errors="replace").splitlines()[-count:]
        except OSError:
            lines = []
        shown = "".join(f"\n  {line}" for line in lines)
        return f" Its log {self._root.daemon_log} ends with:{shown}" if shown else f" Its log: {self._root.daemon_log}"


def _open_log(path: Path) -> int:
    try:
        return open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except OSError as error:
        raise NoDaemon(f"{path} cannot be opened ({error.strerror}). Remove what is there.") from None
