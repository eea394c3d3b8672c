"""While the daemon runs: backups of the registry, and the disk space that is kept for it."""

import asyncio
import logging
import sqlite3

from mosaic.model.reserve import Reserve
from mosaic.model.rundir import StateRoot
from mosaic.registry.backups import back_up

log = logging.getLogger(__name__)
LOOK_S = 60.0  # between two looks at the disk; the reserve is made again when there is space
BACKUP_S = 900.0  # between two backups, if the registry has changed


async def keep_backups(root: StateRoot, look_s: float = LOOK_S, backup_s: float = BACKUP_S) -> None:
    """Back up the registry now and then, and keep the reserve. An error costs one backup."""
    since_backup_s = backup_s  # soon after the start: the last daemon may have been killed long after its last backup
    while True:
        # In a thread: the disk may be slow.
        await asyncio.to_thread(Reserve(root.reserve).make)
        await asyncio.sleep(look_s)
        since_backup_s += look_s
        if since_backup_s >= backup_s:
            since_backup_s = 0.0
            await asyncio.to_thread(_back_up, root)


def _back_up(root: StateRoot) -> None:
    try:
        back_up(root.registry, root.backups)
    except (sqlite3.Error, OSError) as error:
        log.warning("The registry could not be backed up: %s", error)
