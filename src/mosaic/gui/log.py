"""The window's log, logs/gym_gui.log of the state root, and what happens to an error that nothing has caught."""

import contextlib
import logging
import logging.handlers
import os
import sys
import threading
import traceback
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosaic.gui.context import Notices

LIMIT_BYTES = 2_000_000  # and one older file of the same size
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

logger = logging.getLogger(__name__)


class LogFile(logging.handlers.RotatingFileHandler):
    """Bounded and readable only by its owner. A full disk costs lines of the log, nothing else."""

    def _open(self) -> IO[Any]:  # type: ignore[override]
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=_open_private)

    def handleError(self, record: logging.LogRecord) -> None:
        pass

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the last lines may not fit either
            super().close()


def _open_private(path: str, flags: int) -> int:
    # Not blocking: a FIFO of this name would wait for a reader forever.
    return os.open(path, flags | os.O_NONBLOCK, 0o600)


def start_log(path: Path, is_debug: bool = False) -> logging.Handler | None:
    """Write this process's log to `path`; None, and no log, if that is not possible."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = LogFile(path, maxBytes=LIMIT_BYTES, backupCount=1, encoding="utf-8", errors="replace")
    except OSError:
        return None
    handler.setFormatter(logging.Formatter(FORMAT))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if is_debug else logging.INFO)
    for noisy in ("asyncio", "grpc"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return handler


def report_uncaught_errors(notices: "Notices") -> None:
    """Log every error that no slot has caught, and show it in words. The window goes on."""

    def in_the_window(kind: type[BaseException], error: BaseException, at: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        text = "".join(traceback.format_exception(kind, error, at))
        logger.error("Uncaught error in the window:\n%s", text)
        notices.problem(f"Something failed in the window: {kind.__name__}: {error}", text)

    def in_a_thread(args: threading.ExceptHookArgs) -> None:
        text = "".join(traceback.format_exception(args.exc_type, args.exc_value, args.exc_traceback))
        logger.error("Uncaught error in a thread:\n%s", text)

    sys.excepthook = in_the_window
    threading.excepthook = in_a_thread
