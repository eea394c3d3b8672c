"""Chooses a checkpoint of a run: one that its events report and that is intact on the disk.

A worker reports `checkpoint_saved` with a `path` (in the run's folder) and a `step`. The best one is in
`checkpoints/best/`, named by `checkpoints/best/best.json`: {"path", "step", "score", "episodes", "seeds", "version"}.
"""

import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.model import durable
from mosaic.model.rundir import RunDir
from mosaic.submit.config import MAX_STEP

COMMIT = "commit.json"  # in a checkpoint that is a folder: {"parts": {"agent.npz": {"bytes": 1234}}}, written last
_LARGEST_JSON = 16 << 20
_HEAD = 512


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that a worker can load."""

    path: str  # resolved
    step: int | None = None  # None: unknown
    notes: tuple[str, ...] = ()  # why newer ones were skipped

    def with_notes(self, sentence: str) -> list[str]:
        """Sentences for the history of a run that loads it."""
        return [sentence, *(f"skipped: {note}" for note in self.notes)]


@dataclass(frozen=True)
class Nothing:
    """No checkpoint, and why each candidate was skipped."""

    notes: tuple[str, ...] = ()


def payload_of(data: bytes) -> dict[str, Any]:
    """The payload of an event; empty if the worker wrote something else than an object."""
    try:
        value = json.loads(data or b"{}")
    except ValueError:  # a number of more than 4300 digits
        return {}
    return value if isinstance(value, dict) else {}


def newest(rundir: RunDir, saved: Iterable[Mapping[str, Any]]) -> Checkpoint | Nothing:
    """The first of `saved` (payloads of `checkpoint_saved`, newest first) that exists and is intact."""
    notes: list[str] = []
    seen: set[str] = set()
    for payload in saved:
        path = payload.get("path")
        # The best one is a copy for evaluation: it may lack what is needed to continue the training.
        if not isinstance(path, str) or "\0" in path or payload.get("best") or path in seen:
            continue
        seen.add(path)
        problem = damage(rundir, path)
        if not problem:
            return Checkpoint(_real(rundir, path), _step(payload), tuple(notes))
        notes.append(f"{Path(path).name} {problem}")
    return Nothing(tuple(notes))


def best(rundir: RunDir) -> Checkpoint | Nothing:
    """The checkpoint that `checkpoints/best/best.json` names, relative to its folder or to the run's."""
    folder = rundir.checkpoints / "best"
    about = read_small(folder / "best.json")
    path = about.get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        return Nothing()
    named = str(folder / path) if os.path.exists(folder / path) else path
    problem = damage(rundir, named)
    return Nothing((f"{named} {problem}",)) if problem else Checkpoint(_real(rundir, named), _step(about))


def known(rundir: RunDir, path: str, saved: Iterable[Mapping[str, Any]]) -> Checkpoint:
    """The checkpoint at this resolved path, with its step if one of `saved` has it."""
    for payload in saved:
        saved_at = payload.get("path")
        if isinstance(saved_at, str) and "\0" not in saved_at and _real(rundir, saved_at) == path:
            return Checkpoint(path, _step(payload))
    return Checkpoint(path)


def damage(rundir: RunDir, path: str) -> str:
    """What is wrong with a checkpoint, as far as a quick look shows; empty if nothing is."""
    real = Path(_real(rundir, path))
    try:
        if not real.is_relative_to(os.path.realpath(rundir.path)):
            return "is outside the run's folder"
        if real.is_dir():
            return _folder_damage(real)
        return _file_damage(real) if real.is_file() else "no longer exists"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _real(rundir: RunDir, path: str) -> str:
    """Where it is on this machine. A run on a node without a shared file system reports the path that it has there."""
    before, is_named, name = path.partition(f"/{rundir.run_id}/")
    if is_named and before != str(rundir.path.parent) and os.path.lexists(rundir.path / name):
        path = name
    return os.path.realpath(rundir.path / path)


def _step(payload: Mapping[str, Any]) -> int | None:
    step = payload.get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step <= MAX_STEP else None


def _file_damage(path: Path) -> str:
    size = path.stat().st_size
    if not size:
        return "is empty"
    with open(durable.open_regular(path, any_owner=True), "rb") as file:
        head = file.read(_HEAD)
        if not head.strip(b"\0"):
            return "contains only zeros"
        # torch and numpy write zip archives, whose directory is at the end: a truncated file has none.
        if head.startswith(b"PK") and not zipfile.is_zipfile(file):
            return "is truncated"
    if path.suffix == ".json" and size <= _LARGEST_JSON and not _is_json(path):
        return "is not valid JSON"
    return ""


def _folder_damage(path: Path) -> str:
    if os.path.lexists(path / COMMIT):
        parts = read_small(path / COMMIT).get("parts")
        if not isinstance(parts, Mapping):
            return f"is damaged ({COMMIT} cannot be read)"
        wrong = [name for name, part in parts.items() if not _has_size(path / name, part)]
        return f"is damaged ({wrong[0]} is missing or has another size)" if wrong else ""
    with os.scandir(path) as entries:
        return "" if next(entries, None) else "is empty"


def _has_size(path: Path, part: Any) -> bool:
    size = part.get("bytes") if isinstance(part, Mapping) else None
    return path.is_file() and (size is None or path.stat().st_size == size)


def read_small(path: Path) -> dict[str, Any]:
    """The JSON object in a worker's file; empty if it is missing, invalid or too large."""
    try:
        return durable.read_json(path, _LARGEST_JSON, any_owner=True) or {}
    except OSError:
        return {}


def _is_json(path: Path) -> bool:
    try:
        json.loads(durable.read_bytes(path, _LARGEST_JSON, any_owner=True))
    except (ValueError, RecursionError):
        return False
    return True
