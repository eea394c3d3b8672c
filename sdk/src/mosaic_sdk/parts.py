"""Parts of a run: runs of the same worker, perhaps on other machines, that a run hands work to.

A worker that names parts in its schema (`schema_of(…, parts=("env",))`) is started in three ways:

1. With parts: `wanted()` says which. It listens at `host_towards(wanted.towards)` for callers that know
   `wanted.secret`, and says where with `announce(address)`. MOSAIC then starts the parts, replaces each that ends, and
   ends them after the run.
2. As a part: `own_part()` says which, where its run listens, and the secret.
3. Without both: all of it in this run.
"""

import json
import os
import socket
from dataclasses import dataclass
from typing import Dict, Optional

from mosaic_sdk import emit
from mosaic_sdk.names import PARTS_WANTED, WorkerEnv


@dataclass(frozen=True)
class Wanted:
    """The parts that a run was started with."""

    counts: Dict[str, int]  # of each part, how many runs share its work
    towards: str  # a host that every part is reached through; 127.0.0.1: all are on this machine
    secret: str


@dataclass(frozen=True)
class Part:
    """What a part is, and how it reaches its run."""

    name: str
    index: int  # from 0
    count: int
    address: str
    secret: str

    def share(self, total: int) -> range:
        """Which of `total` pieces of work are this part's: `count` parts have all of them, evenly."""
        return range(total * self.index // self.count, total * (self.index + 1) // self.count)


def wanted() -> Optional[Wanted]:
    """The parts of this run; None if it has none."""
    text = os.environ.get(WorkerEnv.PARTS)
    if not text:
        return None
    asked = json.loads(text)
    counts = {part["name"]: int(part["count"]) for part in asked["parts"]}
    return Wanted(counts, asked["towards"], os.environ.get(WorkerEnv.PARTS_SECRET, ""))


def own_part() -> Optional[Part]:
    """The part that this run is; None if it is a run by itself."""
    text = os.environ.get(WorkerEnv.PART)
    if not text:
        return None
    address, secret = (os.environ.get(name, "") for name in (WorkerEnv.PART_ADDRESS, WorkerEnv.PARTS_SECRET))
    return Part(address=address, secret=secret, **json.loads(text))


def announce(address: str, emitter: Optional[emit.Emitter] = None) -> None:
    """Say that parts are taken up at this host:port from now on. Call it once."""
    (emitter or emit.stdout()).lifecycle(PARTS_WANTED, {"address": address})


def host_towards(host: str) -> str:
    """The address of this machine's interface that leads to `host`: the other side can reach it. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))
        return str(probe.getsockname()[0])
