"""Finds the daemon, waits while there is none, and starts one when no other process does."""

import logging
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import grpc

from mosaic.model.daemon_address import read_address
from mosaic.model.durable import open_log, read_json
from mosaic.model.rundir import StateRoot

PATIENCE_S = 30.0
RETRY_S = 0.2
_OF_A_RUN = ("MOSAIC_", "GYM_GUI_", "CUDA_VISIBLE_DEVICES")  # a daemon inherits nothing of the run that started it

log = logging.getLogger(__name__)


class DaemonFinder:
    """Retries until a daemon accepts a connection, at the cost of one connect() every 0.2 s."""

    def __init__(self, root: StateRoot, address: str, patience_s: float = PATIENCE_S) -> None:
        self._root = root
        self._address = address
        # At random, so that not all tailers of a machine start a daemon at the same moment.
        self._patience_s = patience_s * random.uniform(1.0, 1.1)
        self._unanswered_since: float | None = None
        self._started: list[subprocess.Popen[bytes]] = []

    def find(self) -> str:
        """The address of a daemon that accepts connections."""
        while not _accepts(address := self._current_address()):
            self.note_no_answer()
        return address

    def channel(self, options: Sequence[tuple[str, Any]]) -> grpc.Channel:
        """To a daemon that accepts connections."""
        return grpc.insecure_channel(self.find(), options=list(options))

    def note_answer(self) -> None:
        self._unanswered_since = None

    def note_no_answer(self) -> None:
        """Wait before the next try; after 30 s without any answer, start a daemon."""
        now = time.monotonic()
        if self._unanswered_since is None:
            self._unanswered_since = now
        if now - self._unanswered_since > self._patience_s:
            self._unanswered_since = now
            self._start_daemon()
        time.sleep(RETRY_S)

    def _current_address(self) -> str:
        """Read from the file every time: a new daemon may listen on another socket path."""
        known = read_address(self._root).addresses
        return next((one for one in known if one.startswith("unix:")), self._address)

    def _start_daemon(self) -> None:
        self._started = [daemon for daemon in self._started if daemon.poll() is None]
        if (read_json(self._root.settings) or {}).get("stopped_on_purpose"):
            return
        log.info("No daemon for %.0f s; starting one", self._patience_s)
        argv = [sys.executable, "-m", "mosaic.daemon.server", "--root", str(self._root.path), "--from-settings"]
        env = {name: value for name, value in os.environ.items() if not name.startswith(_OF_A_RUN)}
        try:
            with open(open_log(self._root.daemon_log), "ab") as out:
                self._started.append(
                    subprocess.Popen(
                        argv, cwd="/", env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
                    )
                )
        except OSError as error:
            log.warning("A daemon could not be started: %s", error)


def _accepts(address: str) -> bool:
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
