"""The daemon's log, logs/trainer_daemon.log of the state root."""

import logging
import logging.handlers
import os
from typing import IO, Any

from mosaic.model.durable import open_regular
from mosaic.model.errors import BadRoot
from mosaic.model.log_format import LogFormat
from mosaic.model.rundir import StateRoot

LIMIT_BYTES = 10 << 20  # and three older files of the same size


class LogFile(logging.handlers.RotatingFileHandler):
    """Bounded, readable only by its owner, and never a FIFO or a link: neither may stop or redirect a daemon."""

    def _open(self) -> IO[Any]:  # type: ignore[override]
        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=_open_private)


def _open_private(path: str, flags: int) -> int:
    fd = open_regular(path, flags)
    os.fchmod(fd, 0o600)  # the client that starts the daemon may have created it
    return fd


def log_to_file(root: StateRoot) -> None:
    try:
        handler = LogFile(root.daemon_log, maxBytes=LIMIT_BYTES, backupCount=3, encoding="utf-8")
    except OSError as error:
        raise BadRoot(f"{root.daemon_log} cannot be opened ({error.strerror}). Remove what is there.") from error
    handler.setFormatter(LogFormat("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
