"""Failpoints: named places in the code where the fault lab kills or stops this process, or makes the disk fail.

    MOSAIC_FAILPOINTS=name[:action[:times[:skip]]],…   action: kill (SIGKILL to itself), stop, full (ENOSPC), eio
    MOSAIC_FAILPOINTS_DIR=folder                       one file per name, one byte per visit

Of all visits to a point, the first `skip` (0) pass, the next `times` (1) act, and the rest pass. With the folder,
visits are counted across all processes and restarts, so a restarted daemon is not killed at the same point again.
Without the variable, a failpoint costs one test of a bool. A worker never inherits it. Standard library only.
"""

import errno
import os
import signal
from typing import NamedTuple

POINTS = {  # in the order in which a run reaches them: one between any two steps that a crash could separate
    "submit.validated": "daemon: the config is valid, nothing is written",
    "submit.folder": "daemon: the run's folder exists, its config is not written",
    "submit.recorded": "daemon: the files are written, the row is not",
    "submit.added": "daemon: the row is committed, the client is not answered",
    "registry.commit": "daemon: any change of the registry, before its COMMIT",
    "registry.committed": "daemon: any change of the registry, after its COMMIT",
    "claim.decided": "daemon: a run may start, it is not claimed",
    "claim.done": "daemon: the run is claimed, nothing is prepared",
    "spawn.planned": "daemon: the launch is planned, launch.json is not written",
    "spawn.written": "daemon: launch.json is written, no holder is spawned",
    "spawn.spawned": "daemon: the holder is spawned, but not yet known to the daemon",
    "far.placed": "daemon: a run for a cluster has its attempt, nothing is prepared",
    "far.queued": "daemon: its job is in the cluster's queue and held, its id is not recorded",
    "far.recorded": "daemon: the job's id is recorded, the job is still held",
    "far.released": "daemon: the job may run, which is not recorded",
    "requeue.decided": "daemon: a run that its cluster ended is to be continued, and nothing is recorded",
    "far.taken": "daemon: a node's process may take the launch, which it does not have yet",
    "lock.open": "holder: it runs without its lock",
    "lock.taken": "holder: it has the lock and has not read launch.json",
    "hold.owned": "holder: it owns the run, no spool is open",
    "hold.tree": "holder: the tree's root waits, started.json is not written",
    "hold.started": "holder: started.json is written, the worker does not run",
    "hold.going": "holder: the worker runs, no tailer does",
    "register.ask": "tailer: it has its lock, but is not registered",
    "register.ready": "daemon: READY is committed, the store is not open",
    "register.answered": "tailer: it has the cursor and has read nothing",
    "publish.ask": "tailer: a batch is parsed, but not sent",
    "commit.open": "daemon: the rows of a batch are built, no transaction is open",
    "commit.full": "daemon: the transaction holds the batch, before its COMMIT",
    "commit.done": "daemon: the batch is committed, but not broadcast",
    "ack.ready": "daemon: the batch is broadcast, but not acknowledged",
    "ack.received": "tailer: the batch is acknowledged, nothing is punched",
    "punch.open": "tailer: acknowledged bytes are about to be freed",
    "punch.done": "tailer: acknowledged bytes are freed",
    "far.whole": "daemon: a file from a node has arrived, it is not in its place",
    "command.checked": "daemon: a command is valid and new, but not in the run's file",
    "command.appended": "daemon: the command is in the file, which is not fsynced",
    "command.synced": "daemon: the command is durable, the client is not answered",
    "cancel.requested": "daemon: the cancel is committed, the client is not answered",
    "exit.proven": "holder: the tree is dead, exit.json is not written",
    "exit.written": "holder: exit.json is written, the holder still lives",
    "cleanup.proven": "daemon: the processes of a dead holder are dead, exit.json is not written",
    "finish.freed": "daemon: the GPUs are free, the spool is not drained",
    "finish.drained": "daemon: everything is stored, the file is not finalized",
    "finish.closed": "daemon: the file is finalized, the final state is not written",
    "finish.moved": "daemon: the final state is written, but not broadcast",
    "import.full": "daemon: the transaction holds a batch of an imported run, before its COMMIT",
    "import.appended": "daemon: a batch of an imported run is committed, but not acknowledged",
    "import.recorded": "daemon: the files of an imported run are written, the row is not",
    "import.added": "daemon: the row of an imported run is committed, the client is not answered",
    "delete.forgotten": "daemon: the store is closed, the row still exists",
    "delete.unlisted": "daemon: the row is deleted, the folder still exists",
    "delete.done": "daemon: nothing is left, the client is not answered",
}
_ERRORS = {"full": errno.ENOSPC, "eio": errno.EIO}
ACTIONS = ("kill", "stop", *_ERRORS)


class Order(NamedTuple):
    """The action at one point."""

    action: str
    times: int = 1
    skip: int = 0


def failpoint(name: str) -> None:
    """Do here what MOSAIC_FAILPOINTS asks for; nothing without it."""
    if _armed:
        _visit(name)


def read_orders(text: str) -> "dict[str, Order]":
    """The orders in a MOSAIC_FAILPOINTS; ValueError for an unknown name or action, which would test nothing."""
    orders = {}
    for part in filter(None, text.split(",")):
        name, action, *numbers = [*part.split(":"), "kill"][: max(2, part.count(":") + 1)]
        if name not in POINTS or action not in ACTIONS:
            raise ValueError(f"MOSAIC_FAILPOINTS: there is no failpoint '{part}'.")
        orders[name] = Order(action, *map(int, numbers))
    return orders


_orders = read_orders(os.environ.get("MOSAIC_FAILPOINTS", ""))
_folder = os.environ.get("MOSAIC_FAILPOINTS_DIR", "")
_visits: "dict[str, int]" = {}
_armed = bool(_orders)


def _visit(name: str) -> None:
    order = _orders.get(name)
    if order is None or not order.skip < _count(name) <= order.skip + order.times:
        return
    if order.action in _ERRORS:
        number = _ERRORS[order.action]
        raise OSError(number, f"{os.strerror(number)} (failpoint {name})")
    os.kill(os.getpid(), signal.SIGKILL if order.action == "kill" else signal.SIGSTOP)


def _count(name: str) -> int:
    """Which visit this is, from 1."""
    if not _folder:
        _visits[name] = _visits.get(name, 0) + 1
        return _visits[name]
    fd = os.open(os.path.join(_folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, b".")
        # After an append the position is the end of the own byte, even if other processes append as well.
        return os.lseek(fd, 0, os.SEEK_CUR)
    finally:
        os.close(fd)
