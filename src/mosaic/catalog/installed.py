"""mosaic.json in an environment: how it was created, so that it can be listed quickly, compared and rebuilt."""

import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from mosaic.catalog.workers import spelled
from mosaic.model import durable

FILE_NAME = "mosaic.json"


@dataclass(frozen=True)
class Installed:
    """One environment that `mosaic worker install` created."""

    worker: str
    variant: str
    package: str  # the distribution that names the worker
    version: str
    source: str  # a folder, or a requirement
    python: str  # 3.11.7
    sdk: str
    locked: bool
    fingerprint: str  # of everything that went into it
    size_bytes: int = 0
    asked_python: str = ""  # what the user chose, to be used again when it is rebuilt
    asked_torch: str = ""
    asked_packages: list[str] = field(default_factory=list)  # in addition to what the worker declares
    asked_files: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return spelled(self.worker, self.variant)

    def write(self, folder: Path) -> None:
        durable.write_json(folder / FILE_NAME, {"version_of_file": 1, **asdict(self)})


def read_installed(folder: Path) -> Installed | None:
    """The record of an install; None if the environment was created by hand or by an incompatible MOSAIC."""
    try:
        stored = durable.read_json(folder / FILE_NAME, any_owner=True) or {}  # a shared environment
        return Installed(**{each.name: stored[each.name] for each in fields(Installed) if each.name in stored})
    except (TypeError, OSError):
        return None


def size_of(folder: Path) -> int:
    """Bytes of all files, each counted once however many names it has."""
    seen: dict[int, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(place, name))
            seen[status.st_ino] = status.st_size
    return sum(seen.values())
