"""The daemon as a tailer on another machine finds it: at one address, with one certificate, both from launch.json.

It never reads the daemon's files and never starts a daemon: on a node of a cluster both would be somebody else's.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

import grpc

from mosaic.wire.names import NODES_HOST

FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 5.0  # hundreds of tailers wait for the same daemon

log = logging.getLogger(__name__)


class FarDaemon:
    """Waits as long as it takes."""

    def __init__(self, launch: Mapping[str, Any]) -> None:
        daemon = launch.get("daemon")
        if not isinstance(daemon, Mapping):
            raise ValueError("launch.json does not say where the daemon listens for other machines.")
        self._address = str(daemon["address"])
        self._certificate = str(daemon["certificate"]).encode()
        self._pause_s = FIRST_PAUSE_S
        self.answered_at = time.monotonic()

    def channel(self, options: Sequence[tuple[str, Any]]) -> grpc.Channel:
        credentials = grpc.ssl_channel_credentials(root_certificates=self._certificate)
        # Its certificate names no machine: whoever has the key is the daemon, wherever it listens.
        named = ("grpc.ssl_target_name_override", NODES_HOST)
        return grpc.secure_channel(self._address, credentials, options=[*options, named])

    def note_answer(self) -> None:
        self.answered_at = time.monotonic()
        self._pause_s = FIRST_PAUSE_S

    def note_no_answer(self) -> None:
        if self._pause_s == LONGEST_PAUSE_S / 2:
            log.info("No answer from %s; trying on", self._address)
        time.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
