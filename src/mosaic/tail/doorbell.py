"""Finds the daemon, waits for it while it is away, and starts one when nobody else does."""

import logging
import os
import random
import socket
import subprocess
import sys
import time

from mosaic.model.durable import read_json
from mosaic.model.rundir import StateRoot

PATIENCE_S = 30.0
LOOK_AGAIN_S = 0.2
_OF_A_RUN = ("MOSAIC_", "GYM_GUI_", "CUDA_VISIBLE_DEVICES")  # a daemon inherits nothing of the run that started it

log = logging.getLogger(__name__)


class Doorbell:
    """Rings until somebody opens; costs a connect() five times a second meanwhile."""

    def __init__(self, root: StateRoot, address: str, patience_s: float = PATIENCE_S) -> None:
        self._root = root
        self._address = address
        # Not all tailers of a machine should start a daemon in the same moment.
        self._patience_s = patience_s * random.uniform(1.0, 1.1)
        self._alone_since: float | None = None
        self._started: list[subprocess.Popen[bytes]] = []

    def ring(self) -> str:
        """The address of a daemon that takes connections."""
        while not _opens(address := self._current_address()):
            self.nobody_answered()
        return address

    def answered(self) -> None:
        self._alone_since = None

    def nobody_answered(self) -> None:
        """Wait a moment; after 30 s of such moments, start a daemon."""
        now = time.monotonic()
        if self._alone_since is None:
            self._alone_since = now
        if now - self._alone_since > self._patience_s:
            self._alone_since = now
            self._start_daemon()
        time.sleep(LOOK_AGAIN_S)

    def _current_address(self) -> str:
        """A new daemon may listen elsewhere (another socket path), so the file is read every time."""
        known = (read_json(self._root.address) or {}).get("addresses", [])
        return next((one for one in known if str(one).startswith("unix:")), self._address)

    def _start_daemon(self) -> None:
        self._started = [daemon for daemon in self._started if daemon.poll() is None]
        if (read_json(self._root.settings) or {}).get("stopped_on_purpose"):
            return
        log.info("No daemon for %.0f s; starting one", self._patience_s)
        argv = [sys.executable, "-m", "mosaic.daemon.server", "--root", str(self._root.path), "--from-settings"]
        env = {name: value for name, value in os.environ.items() if not name.startswith(_OF_A_RUN)}
        try:
            with open(self._root.daemon_log, "ab") as out:
                self._started.append(
                    subprocess.Popen(
                        argv, cwd="/", env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                    )
                )
        except OSError as error:
            log.warning("A daemon could not be started: %s", error)


def _opens(address: str) -> bool:
    family, where = _endpoint(address)
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(where)
        except OSError:
            return False
    return True


def _endpoint(address: str) -> tuple[int, "str | tuple[str, int]"]:
    if address.startswith("unix:"):
        return socket.AF_UNIX, address.removeprefix("unix:")
    host, _, port = address.rpartition(":")
    return socket.AF_INET, (host, int(port))
