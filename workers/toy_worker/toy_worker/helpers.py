"""The part `helper` of a toy run: it reports to its run over TCP, and then does nothing until it is ended.

helper ── secret, index ──▶ run        the run prints helper_arrived {"index": 1}
"""

import hmac
import socket
import threading
from typing import Any, Dict, Optional

from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.parts import Part, announce, host_towards, wanted

from toy_worker.config import ToyConfig
from toy_worker.telemetry import Telemetry

HELPER = "helper"
CONNECT_S = 10.0
LEAVE_S = 60.0
LONGEST_GREETING = 256


class HelpersFailed(Exception):
    """What helpers_fail asks for."""


def take_up_helpers(telemetry: Telemetry) -> Optional[socket.socket]:
    """Listen for the helpers of this run, in a thread; None if it has none."""
    asked = wanted()
    if asked is None:
        return None
    server = socket.create_server((host_towards(asked.towards), 0))
    threading.Thread(target=_take_up, args=(server, asked.secret, telemetry), daemon=True).start()
    host, port = server.getsockname()[:2]
    announce(f"{host}:{port}", telemetry)
    return server


def help_run(part: Part, config: ToyConfig, telemetry: Telemetry) -> Dict[str, Any]:
    """The work of a helper: report, then wait for the end of the run."""
    host, _, port = part.address.rpartition(":")
    with Heartbeat(config.heartbeat_s, emitter=telemetry):
        if config.helpers_fail:
            raise HelpersFailed("helpers_fail is set")
        with socket.create_connection((host, int(port)), CONNECT_S) as connection:
            connection.sendall(f"{part.secret} {part.index}\n".encode())
            connection.settimeout(None)
            connection.recv(1)
            threading.Event().wait(LEAVE_S)  # MOSAIC ends it; it would be replaced if it ended before its run did
    return {"helped": part.index}


def _take_up(server: socket.socket, secret: str, telemetry: Telemetry) -> None:
    kept = []  # closing a connection would end its helper
    while True:
        try:
            connection, _ = server.accept()
            connection.settimeout(CONNECT_S)
            # Anybody may connect: until the secret is checked, it is a few bytes of whatever kind.
            given, _, index = connection.makefile("rb").readline(LONGEST_GREETING).partition(b" ")
            connection.settimeout(None)
        except socket.timeout:
            continue
        except OSError:
            return  # the run is over
        if hmac.compare_digest(given, secret.encode()) and index.strip().isdigit():
            telemetry.lifecycle("helper_arrived", {"index": int(index)})
            kept.append(connection)
        else:
            connection.close()
