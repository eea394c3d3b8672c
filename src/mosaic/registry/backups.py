"""Backups of `registry.db`: the newest few, each a whole copy that was renamed only when it was complete.

backups/registry-{revision}.db
"""

import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from mosaic.model import durable
from mosaic.model.reserve import free_bytes
from mosaic.registry.condition import revision_of

log = logging.getLogger(__name__)
KEPT = 3
SPARE_BYTES = 64 << 20  # a backup must not take the last of the disk


def back_up(path: Path, folder: Path) -> Path | None:
    """Copy the registry, unless nothing has changed since the last copy or the disk is nearly full.

    It uses a connection of its own and reads one snapshot: the registry's thread does not wait for it.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    _remove_unfinished(folder)
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5.0)) as db:
        revision = int(db.execute("SELECT revision FROM clock").fetchone()[0])
        target = folder / f"registry-{revision:012d}.db"
        if target.exists() or free_bytes(folder) < path.stat().st_size + SPARE_BYTES:
            return None
        with durable.Replacement(target) as file, closing(sqlite3.connect(file.name)) as copy:
            db.backup(copy)
            # A copy that is not in WAL mode is one file, whole in itself.
            copy.execute("PRAGMA journal_mode = DELETE")
    _keep_newest(folder)
    return target


def candidates(path: Path, folder: Path) -> list[Path]:
    """Files that a rebuild can start from: the registry itself, files that were put aside, backups."""
    beside = [*path.parent.glob(f"{path.name}.damaged-*"), *path.parent.glob(f"{path.name}.backup-v*")]
    files = [file for file in beside if not file.name.endswith(("-wal", "-shm"))]
    return [path, *files, *folder.glob("registry-*.db")]


def newest_intact(files: list[Path]) -> tuple[Path | None, int]:
    """The intact file with the highest revision, and that revision."""
    found = max(((revision_of(file), str(file)) for file in files), default=(-1, ""))
    return (Path(found[1]), found[0]) if found[0] > 0 else (None, 0)


def _keep_newest(folder: Path) -> None:
    for old in sorted(folder.glob("registry-*.db"))[:-KEPT]:
        old.unlink(missing_ok=True)


def _remove_unfinished(folder: Path) -> None:
    """Remove what a killed daemon left of a copy. One daemon serves a root, and it makes one copy at a time."""
    for name in os.listdir(folder):
        if name.endswith((".tmp", ".tmp-journal", ".tmp-wal", ".tmp-shm")):
            (folder / name).unlink(missing_ok=True)
