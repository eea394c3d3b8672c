"""Disk space for changes of the registry that lead to free space, such as a cancel or a delete, on a full disk."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from mosaic.model.errors import StoreUnavailable
from mosaic.model.reserve import Reserve, allocate

WAL_BYTES = (1 << 20) * 9 // 2  # SQLite starts over in its WAL after 1,000 pages, which need 4.1 MB


class HasReserve(Protocol):
    reserve: Reserve


Self = TypeVar("Self", bound=HasReserve)
P = ParamSpec("P")
T = TypeVar("T")


def even_on_a_full_disk(change: Callable[Concatenate[Self, P], T]) -> Callable[Concatenate[Self, P], T]:
    """A change that may use the reserve when the disk is full."""

    @wraps(change)
    def insist(registry: Self, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return change(registry, *args, **kwargs)
        except StoreUnavailable:
            if not registry.reserve.spend():
                raise
            return change(registry, *args, **kwargs)

    return insist


def allocate_wal(path: Path) -> None:
    """Set disk space aside for SQLite's log, so that most changes succeed on a full disk without the reserve."""
    # SQLite never shortens this file while it is open, and ignores what follows its last frame.
    with suppress(OSError):
        allocate(Path(f"{path}-wal"), WAL_BYTES)
