"""host:port."""

from __future__ import annotations

import errno
import secrets
import socket


def free_address(host: str = "127.0.0.1") -> str:
    """An address that is unused at this moment.

    The port is outside the range for outgoing connections: one of those could take it while the server restarts.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        try:
            with socket.create_server((host, port)):
                return f"{host}:{port}"
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise


def split_address(address: str) -> tuple[str, int]:
    """Host and port; without a host it is this machine only."""
    host, _, port = str(address).rpartition(":")
    return host or "127.0.0.1", int(port)
