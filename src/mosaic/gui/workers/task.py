"""A `mosaic worker …` command in a process of its own, followed through its output file.

A file, not a pipe: the command goes on when the window is closed, and what it printed can be read afterwards.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from PySide6.QtCore import QObject, QTimer, Signal

from mosaic.present.text import printable

if TYPE_CHECKING:
    from mosaic.model.rundir import StateRoot

POLL_MS = 150
_DOWNLOADED = re.compile(r"(\d+) of (\d+) MiB done")
_ERROR = "mosaic: "


class WorkerTask(QObject):
    """1. `ended` is emitted once, after the last line. 2. A cancelled task changes nothing that was installed."""

    progressed = Signal()
    ended = Signal(bool)  # whether it succeeded

    def __init__(self, root: "StateRoot", name: str, words: Sequence[str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.name = name
        self.words = tuple(words)
        self.lines: list[str] = []
        self.is_cancelled = False
        self._code: int | None = None
        self._tail = b""
        self._process, self._log = _start(root, name, self.words)
        self._timer = QTimer(self, interval=POLL_MS)
        self._timer.timeout.connect(self._poll)
        self._timer.start()

    @property
    def is_running(self) -> bool:
        return self._code is None

    @property
    def has_succeeded(self) -> bool:
        return self._code == 0

    @property
    def phase(self) -> str:
        """The newest line, without the dots that mark a phase."""
        return self.lines[-1].strip().removesuffix("…").rstrip() if self.lines else "Starting"

    @property
    def fraction(self) -> float | None:
        """How much of a download is done; None outside downloads."""
        match = _DOWNLOADED.search(self.lines[-1]) if self.lines else None
        return int(match[1]) / int(match[2]) if match and int(match[2]) else None

    @property
    def failure(self) -> str:
        """Why it failed, in one sentence."""
        errors = [line.removeprefix(_ERROR) for line in self.lines if line.startswith(_ERROR)]
        return errors[-1] if errors else f"{self.name}: the command ended with exit code {self._code}."

    def cancel(self) -> None:
        """End it and what it started. An install that is cancelled leaves the previous environment unchanged."""
        if self.is_running:
            self.is_cancelled = True
            os.killpg(self._process.pid, signal.SIGTERM)

    def _poll(self) -> None:
        code = self._process.poll()  # before reading: what it wrote at the end is read, too
        if self._read() and code is None:
            self.progressed.emit()
        if code is not None:
            self._code = code
            self._timer.stop()
            self._log.close()
            self.progressed.emit()
            self.ended.emit(code == 0)

    def _read(self) -> bool:
        data = self._tail + self._log.read()
        *whole, self._tail = data.split(b"\n")
        self.lines += [printable(line.decode(errors="replace")) for line in whole]
        return bool(whole)


def _start(root: "StateRoot", name: str, words: Sequence[str]) -> "tuple[subprocess.Popen[bytes], BinaryIO]":
    root.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = root.logs / f"worker-{words[0]}-{re.sub(r'[^A-Za-z0-9_-]', '-', Path(name).name)}.log"
    output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "mosaic", "worker", *words],
            cwd="/",
            env={**os.environ, "MOSAIC_HOME": str(root.path), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    finally:
        os.close(output)
    return process, open(path, "rb")
