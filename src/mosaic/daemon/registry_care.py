"""While the daemon runs: backups of the registry, a look at its file, and the disk space that is kept for it."""

import asyncio
import logging
import os
import sqlite3
import time

from mosaic.model.errors import MosaicError
from mosaic.model.reserve import Reserve
from mosaic.model.rundir import StateRoot
from mosaic.registry.backups import back_up
from mosaic.registry.condition import problem_of

log = logging.getLogger(__name__)
LOOK_S = 60.0  # between two looks at the disk; the reserve is made again when there is space
BACKUP_S = 900.0  # between two backups, if the registry has changed
FRESH_S = 2.0  # how long the result of a look is used: a look reads the whole file
WHAT_TO_DO = (
    "Live runs continue, and nothing is lost; changes may be refused. Restart the daemon, which rebuilds the registry "
    "from its backups and records: mosaic daemon stop && mosaic daemon start"
)


class RegistryCare:
    """Looks whether another program has damaged, replaced or deleted registry.db under the running daemon.

    Made after the registry was opened: the file at its path is then the open one.
    """

    def __init__(self, root: StateRoot) -> None:
        self._root = root
        self._inode = os.lstat(root.registry).st_ino
        self._problem = ""
        self._looked_at = float("-inf")
        self._look = asyncio.Lock()  # one at a time

    async def problem(self) -> str:
        """What is wrong with the registry's file and what to do; empty if it is fine."""
        async with self._look:
            if time.monotonic() - self._looked_at > FRESH_S:
                found = await asyncio.to_thread(_problem, self._root, self._inode)
                if found and found != self._problem:
                    log.error("%s", found)
                self._problem, self._looked_at = found, time.monotonic()
        return self._problem

    async def keep(self, look_s: float = LOOK_S, backup_s: float = BACKUP_S) -> None:
        """Back up the registry now and then, and keep the reserve. An error costs one backup."""
        since_backup_s = backup_s  # soon after the start: the last daemon may have been killed long after its backup
        while True:
            # In a thread: the disk may be slow.
            await asyncio.to_thread(Reserve(self._root.reserve).make)
            await asyncio.sleep(look_s)
            since_backup_s += look_s
            # A damaged registry must not push the good copies out.
            if not await self.problem() and since_backup_s >= backup_s:
                since_backup_s = 0.0
                await asyncio.to_thread(_back_up, self._root)


def _problem(root: StateRoot, inode: int) -> str:
    try:
        why = problem_of(root.registry, has_traces=True)
        # Not shown by its content: SQLite reads the WAL of the old file with the new one.
        if not why and os.lstat(root.registry).st_ino != inode:
            why = "another file was put in its place"
    except (sqlite3.Error, OSError, MosaicError):
        return ""  # it cannot be found out now, on a failing disk for example; that is no proof of damage
    return f"The registry {root.registry} cannot be trusted: {why}. {WHAT_TO_DO}" if why else ""


def _back_up(root: StateRoot) -> None:
    try:
        back_up(root.registry, root.backups)
    except (sqlite3.Error, OSError) as error:
        log.warning("The registry could not be backed up: %s", error)
