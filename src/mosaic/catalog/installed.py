"""mosaic.json in an environment: how it was made, so that it can be listed quickly, compared and made again."""

import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from mosaic.catalog.workers import spelled
from mosaic.model import durable

FILE_NAME = "mosaic.json"


@dataclass(frozen=True)
class Installed:
    """One environment that `mosaic worker install` made."""

    worker: str
    variant: str
    package: str  # the distribution that names the worker
    version: str
    source: str  # a folder, or a requirement
    python: str  # 3.11.7
    sdk: str
    locked: bool
    fingerprint: str  # of all that went in
    size_bytes: int = 0
    asked_python: str = ""  # what the user chose, to be chosen again when it is made anew
    asked_torch: str = ""

    @property
    def name(self) -> str:
        return spelled(self.worker, self.variant)

    def write(self, folder: Path) -> None:
        durable.write_json(folder / FILE_NAME, {"version_of_file": 1, **asdict(self)})


def read_installed(folder: Path) -> Installed | None:
    """None when the environment was made by hand, or by a MOSAIC that wrote something else."""
    try:
        told = durable.read_json(folder / FILE_NAME) or {}
        return Installed(**{field.name: told[field.name] for field in fields(Installed) if field.name in told})
    except (TypeError, OSError):  # OSError: a submit may name a worker with more letters than a folder's name can have
        return None


def size_of(folder: Path) -> int:
    """Bytes of all files, each counted once however many names it has."""
    seen: dict[int, int] = {}
    for place, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(place, name))
            seen[status.st_ino] = status.st_size
    return sum(seen.values())
