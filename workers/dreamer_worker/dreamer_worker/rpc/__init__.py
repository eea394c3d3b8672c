"""Calls between the processes, in Portal's format.

framing.py   bytes and what they mean; the only importer of portal
server.py    answers calls at an address
client.py    calls, and reconnects automatically
local.py     the client's interface for methods of the same process
address.py   host:port          traffic.py   how much went over a connection

A plain `portal.Client` or `portal.Server` with the same handshake understands it. The sockets are our own, because
Portal's poll (a blocked process uses a seventh of a core), bind every interface and exit at a bad packet.
"""

from dreamer_worker.rpc.address import free_address, split_address
from dreamer_worker.rpc.client import Client
from dreamer_worker.rpc.framing import Disconnected, Garbage, RpcError, greeting_of, make_secret
from dreamer_worker.rpc.local import Caller, LocalClient
from dreamer_worker.rpc.server import LEAVING_S, Reply, Server

__all__ = [
    "LEAVING_S",
    "Caller",
    "Client",
    "Disconnected",
    "Garbage",
    "LocalClient",
    "Reply",
    "RpcError",
    "Server",
    "free_address",
    "greeting_of",
    "make_secret",
    "split_address",
]
