"""A copy of a folder that programs are writing to, and in which a trial has planted special files."""

import contextlib
import os
import shutil
from collections.abc import Collection
from pathlib import Path


def copy_live(source: Path, target: Path, leave_out: Collection[str] = ()) -> None:
    """Files and folders, and links as links: one may lead to /dev/zero. FIFOs, sockets and what disappears are not."""
    for folder, folders, files in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in (name for name in [*folders, *files] if name not in leave_out):
            with contextlib.suppress(FileNotFoundError):
                _copy(Path(folder, name), place / name)


def _copy(path: Path, target: Path) -> None:
    if path.is_symlink():
        target.symlink_to(os.readlink(path))
    elif path.is_file():
        shutil.copy2(path, target)
