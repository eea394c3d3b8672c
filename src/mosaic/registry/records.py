"""Records of runs outside `registry.db`: what a rebuild of the registry needs, in a folder that no worker writes to.

control/
  {run_id}/records.jsonl   one line per change of the run's row, appended after the commit
  registry.jsonl           deleted runs, drained GPUs, experiments
  revision                 the newest revision that is recorded

The registry commits first and is the truth. Nothing is spawned or answered before the record is written, so a daemon
that is killed in between loses no record of a process: its successor finds `revision` behind and records again.
Records need no fsync: after a power loss the registry itself is on the disk, and its rows are recorded again.
"""

import errno
import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)
NAME = "records.jsonl"
LONGEST = 64 << 20  # bytes of one file that are read
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_OF_ONE_RUN = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM)


def is_of_one_run(error: OSError) -> bool:
    """Whether the error is due to what lies in one run's folder, so that the records of others can be written."""
    return error.errno in _OF_ONE_RUN


@dataclass
class Record:
    """The newest recorded state of one run."""

    run_id: str
    revision: int = 0
    row: dict[str, Any] = field(default_factory=dict)  # columns of the table `runs`
    history: list[list[Any]] = field(default_factory=list)  # old, new, at, reason
    gpus: list[str] = field(default_factory=list)

    def apply(self, line: Mapping[str, Any]) -> None:
        self.revision = int(line["revision"])
        self.row.update(line["row"])
        self.gpus = list(line["gpus"])
        self.history = list(line["history"])


class Records:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._revision_fd = -1

    # ---- writing

    def append(self, run_id: str, line: Mapping[str, Any], may_make_folder: bool) -> None:
        """Add a line to a run's record. Raises OSError; then the next line should be a whole one.

        `may_make_folder`: not while a worker of the run may be alive. Its control folder was deleted then, and a new
        one without its lock and its files would say that nothing of the run was ever started.
        """
        place = self._folder / run_id
        self._refuse_link_elsewhere(place)
        if may_make_folder:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _append(place / NAME, line)

    def _refuse_link_elsewhere(self, place: Path) -> None:
        """Only the run's own folder may be linked here, by an older version."""
        if place.is_symlink():
            area, name = os.path.split(os.path.realpath(place))
            if (os.path.dirname(area), name) != (os.path.realpath(self._folder.parent), place.name):
                raise OSError(errno.ELOOP, "is a link that leads elsewhere", str(place))

    def has(self, run_id: str) -> bool:
        return (self._folder / run_id / NAME).exists()

    def note(self, line: Mapping[str, Any]) -> None:
        """Add a line about deleted runs, drained GPUs or experiments."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _append(self._folder / "registry.jsonl", line)

    def mark(self, revision: int) -> None:
        """All changes up to this revision are recorded."""
        if self._revision_fd < 0:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._folder / "revision"
            self._revision_fd = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
        # A fixed width and one write: a reader finds the old number or the new one.
        os.pwrite(self._revision_fd, b"%020d\n" % revision, 0)

    def close(self) -> None:
        if self._revision_fd >= 0:
            os.close(self._revision_fd)
        self._revision_fd = -1

    # ---- reading

    def revision(self) -> int:
        """The newest recorded revision; 0 when nothing was recorded, or the file says nothing usable."""
        text = _read(self._folder / "revision", 64).strip()
        return int(text) if text.isdigit() else 0

    def run_ids(self) -> list[str]:
        try:
            names = sorted(os.listdir(self._folder))
        except OSError:
            return []
        return [name for name in names if (self._folder / name / NAME).is_file()]

    def read(self, run_id: str) -> Record | None:
        """The record of a run; None if it has none that can be used."""
        record = Record(run_id)
        for line in _lines(self._folder / run_id / NAME):
            try:
                record.apply(line)
            except (KeyError, TypeError, ValueError) as error:
                log.warning("A line in the record of run %s is ignored: %r", run_id, error, extra={"run_id": run_id})
        return record if record.row.get("id") == run_id else None

    def deleted(self) -> dict[str, int]:
        """The ids of deleted runs, and the revision of each deletion."""
        lines = list(_lines(self._folder / "registry.jsonl"))
        return {str(line["deleted"]): _number(line.get("revision")) for line in lines if "deleted" in line}

    def experiments(self) -> dict[str, tuple[int, dict[str, Any] | None]]:
        """The newest recorded revision and row of each experiment; no row: it was deleted."""
        found: dict[str, tuple[int, dict[str, Any] | None]] = {}
        for line in _lines(self._folder / "registry.jsonl"):
            at, row, names = _number(line.get("revision")), line.get("experiment"), line.get("experiment_names")
            if isinstance(row, dict) and isinstance(row.get("name"), str):
                found[row["name"]] = (at, row)
            elif isinstance(name := line.get("deleted_experiment"), str):
                found[name] = (at, None)
            elif isinstance(names, list):
                found |= {name: (at, None) for name in found if name not in names}
        return found

    def drained(self) -> list[list[Any]] | None:
        """The newest recorded list of drained GPUs (uuid, run id, reason, time); None when none was recorded."""
        lists = [line["drained"] for line in _lines(self._folder / "registry.jsonl") if "drained" in line]
        return lists[-1] if lists and isinstance(lists[-1], list) else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _append(path: Path, line: Mapping[str, Any]) -> None:
    # The newline comes first: the end of a line that was cut by a kill or a full disk cannot damage the next one.
    data = b"\n" + json.dumps(line, separators=(",", ":")).encode()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FLAGS, 0o600)
    try:
        written = os.write(fd, data)
        if written < len(data):
            raise OSError(28, "No space left on device")
    finally:
        os.close(fd)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in _read(path, LONGEST).split(b"\n"):
        try:
            value = json.loads(line) if line else None
        except (ValueError, RecursionError):
            continue  # cut by a kill or a full disk; a later line is complete
        if isinstance(value, dict):
            yield value


def _read(path: Path, limit: int) -> bytes:
    try:
        with open(os.open(path, os.O_RDONLY | _FLAGS), "rb") as file:
            return file.read(limit)
    except OSError:
        return b""
