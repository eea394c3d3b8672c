"""Where a state root lies, recorded in the root itself: a copied or moved root finds out that it is one.

                                 same inode                            another inode
same path                        at its place                          RESTORED  from a backup, or copied back
another path, the recorded one
  is this folder                 at its place (a bind mount)           -
  is gone, or another folder     MOVED                                 COPIED
  is another folder, same inode  COPIED    (a clone of the disk)       -

A copy has the registry, the run ids, the process ids and the daemon's address of the original. If it were used as it
is, its daemon would take the runs of the original for its own and end them. Device numbers are not recorded: they may
change at a reboot.
"""

import os
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from mosaic.model import durable
from mosaic.model.errors import BadRoot, WrongPlace
from mosaic.model.rundir import AREAS, StateRoot

LARGEST_RECORD = 64 << 10


class Shift(Enum):
    MOVED = "moved"
    COPIED = "copied"
    RESTORED = "restored"


class Place(NamedTuple):
    path: str  # without symbolic links
    inode: int

    @classmethod
    def of(cls, root: StateRoot) -> "Place":
        """Where the root lies now."""
        path = os.path.realpath(root.path)
        return cls(path, os.stat(path).st_ino)

    @classmethod
    def read(cls, value: Any) -> "Place | None":
        """The place in a JSON object; None if it is damaged."""
        path, inode = (value.get("path"), value.get("inode")) if isinstance(value, dict) else (None, None)
        return cls(path, inode) if isinstance(path, str) and type(inode) is int and path.startswith("/") else None

    def to_dict(self) -> dict[str, Any]:
        return {"path": self.path, "inode": self.inode}


def recorded_place(root: StateRoot) -> Place | None:
    """None for a root of an older version, and for a damaged record: the next start of a daemon writes it again."""
    return Place.read(durable.read_json(root.place, LARGEST_RECORD))


def record_place(root: StateRoot) -> None:
    """From now on the root belongs where it is."""
    try:
        durable.write_json(root.place, {"version": 1, **Place.of(root).to_dict()})
    except OSError as error:
        raise BadRoot(f"{root.place} cannot be written ({error.strerror}). Remove what is there.") from error


def shift_of(root: StateRoot) -> Shift | None:
    """What happened to the root since its place was recorded; None: nothing, or there is no root or no record yet."""
    recorded = recorded_place(root)
    return _shift(recorded, root) if recorded and not is_unused(root) else None


def refuse_shifted(root: StateRoot) -> None:
    """Raise WrongPlace, naming both places and the command that adopts it, for a root that is not where it was made."""
    recorded = recorded_place(root)
    shift = shift_of(root)
    if not recorded or not shift:
        return
    sentences = {
        Shift.MOVED: f"The state folder {root.path} was moved here from {recorded.path}. "
        "To use it here, run: mosaic root adopt --moved",
        Shift.COPIED: f"The state folder {root.path} is a copy of {recorded.path}, whose runs and daemon are not its "
        "own. To use the copy, run: mosaic root adopt --copy",
        Shift.RESTORED: f"The state folder {root.path} is not the folder that was made as {recorded.path} (inode "
        f"{Place.of(root).inode}, recorded {recorded.inode}) but a restored or copied one. To use it, run: "
        "mosaic root adopt --copy",
    }
    raise WrongPlace(sentences[shift])


def is_unused(root: StateRoot) -> bool:
    """Whether it never had a run, as in a container image with workers: there is nothing that a copy could confuse."""
    return not root.registry.exists() and not any(_has_entries(root.area(name)) for name in AREAS)


def _has_entries(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _shift(recorded: Place, root: StateRoot) -> Shift | None:
    try:
        here = Place.of(root)
    except OSError:
        return None
    if here == recorded:
        return None
    if here.path == recorded.path:
        return Shift.RESTORED
    if here.inode != recorded.inode:
        return Shift.COPIED
    return _shift_of_same_inode(recorded, here)


def _shift_of_same_inode(recorded: Place, here: Place) -> Shift | None:
    try:
        there = os.stat(recorded.path)
    except (FileNotFoundError, NotADirectoryError):
        return Shift.MOVED
    except OSError:
        return Shift.COPIED  # it may exist, and we may not look
    if os.path.samestat(there, os.stat(here.path)):
        return None
    return Shift.COPIED if there.st_ino == recorded.inode else Shift.MOVED
