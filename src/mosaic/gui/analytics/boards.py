"""The TensorBoards that this window has started. They end with it."""

import socket
import subprocess
import tempfile
import time
from typing import IO, TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject

from mosaic.client.tensorboard import Board
from mosaic.model.errors import MosaicError

if TYPE_CHECKING:
    from mosaic.client import Run
    from mosaic.model.rundir import StateRoot

ANSWER_WITHIN_S = 60.0  # its imports take a while on a busy machine
LAST_LINES = 12


class Boards(QObject):
    """A second request for the same run gets the TensorBoard that is already there."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._running: dict[str, tuple[subprocess.Popen[bytes], str]] = {}
        application = QCoreApplication.instance()
        if application:
            application.aboutToQuit.connect(self.stop)

    @classmethod
    def of(cls, owner: QObject) -> "Boards":
        """Those of a window; `owner` is its hub."""
        found = owner.findChild(cls)
        return found if isinstance(found, cls) else cls(owner)

    def address(self, root: "StateRoot", run: "Run") -> str:
        """Where the run's TensorBoard answers; it is started if there is none. Blocks: call it with hub.compute."""
        process, url = self._running.get(run.run_id, (None, ""))
        if process and process.poll() is None:
            return url
        board = Board.of(root, [run])
        # A file, not a pipe: nobody reads it while TensorBoard runs, and a full pipe would stop it.
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                board.command,
                env=board.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            self._running[run.run_id] = (process, board.url)
            _wait_for_answer(process, board.url, errors)
        return board.url

    def stop(self) -> None:
        for process, _ in self._running.values():
            process.terminate()
        self._running.clear()


def _wait_for_answer(process: "subprocess.Popen[bytes]", url: str, errors: IO[bytes]) -> None:
    port = int(url.rstrip("/").rpartition(":")[2])
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise MosaicError(f"TensorBoard ended with exit code {process.returncode}.{_last_lines(errors)}")
        try:
            socket.create_connection(("localhost", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    process.terminate()
    raise MosaicError(f"TensorBoard did not answer within {ANSWER_WITHIN_S:.0f} s.")


def _last_lines(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").splitlines()
    return "".join(f"\n{line}" for line in lines[-LAST_LINES:])
