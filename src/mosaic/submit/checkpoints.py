"""Which checkpoint of a run to use: what the run said it saved, checked against what lies on the disk.

A worker says `checkpoint_saved` with a `path` (in the run's folder) and a `step`. Its best one lies under
`checkpoints/best/`, named by `checkpoints/best/best.json`: {"path", "step", "score", "episodes", "seeds", "version"}.
"""

import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic.model.durable import read_json
from mosaic.model.rundir import RunDir
from mosaic.submit.config import MAX_STEP

COMMIT = "commit.json"  # of a checkpoint that is a folder: {"parts": {"agent.npz": {"bytes": 1234}}}, written last
_LARGEST_JSON = 16 << 20
_HEAD = 512


@dataclass(frozen=True)
class Checkpoint:
    """Something a worker can load."""

    path: str  # real
    step: int | None = None  # None: the worker did not say
    notes: tuple[str, ...] = ()  # why newer ones were passed over


@dataclass(frozen=True)
class Nothing:
    """No checkpoint, and what was looked at in vain."""

    notes: tuple[str, ...] = ()


def payload_of(data: bytes) -> dict[str, Any]:
    """The payload of an event, whatever the worker put there."""
    try:
        value = json.loads(data or b"{}")
    except ValueError:  # a number of more than 4300 digits
        return {}
    return value if isinstance(value, dict) else {}


def newest(rundir: RunDir, saved: Iterable[Mapping[str, Any]]) -> Checkpoint | Nothing:
    """The first of `saved` (payloads of `checkpoint_saved`, newest first) that is there and whole."""
    notes: list[str] = []
    seen: set[str] = set()
    for payload in saved:
        path = payload.get("path")
        # The best one is a copy for evaluation: it may lack what a training needs to continue.
        if not isinstance(path, str) or "\0" in path or payload.get("best") or path in seen:
            continue
        seen.add(path)
        problem = damage(rundir, path)
        if not problem:
            return Checkpoint(_real(rundir, path), _step(payload), tuple(notes))
        notes.append(f"{Path(path).name} {problem}")
    return Nothing(tuple(notes))


def best(rundir: RunDir) -> Checkpoint | Nothing:
    """What `checkpoints/best/best.json` names, relative to its folder or to the run's."""
    folder = rundir.checkpoints / "best"
    told = _read_small(folder / "best.json")
    path = told.get("path")
    if not isinstance(path, str) or not path or "\0" in path:
        return Nothing()
    named = str(folder / path) if (folder / path).exists() else path
    problem = damage(rundir, named)
    return Nothing((f"{named} {problem}",)) if problem else Checkpoint(_real(rundir, named), _step(told))


def known(rundir: RunDir, path: str, saved: Iterable[Mapping[str, Any]]) -> Checkpoint:
    """The checkpoint at this real path, with its step if one of `saved` names it."""
    for payload in saved:
        told = payload.get("path")
        if isinstance(told, str) and "\0" not in told and _real(rundir, told) == path:
            return Checkpoint(path, _step(payload))
    return Checkpoint(path)


def damage(rundir: RunDir, path: str) -> str:
    """What is wrong with a checkpoint as far as can be told without reading all of it; empty when nothing is."""
    real = Path(_real(rundir, path))
    try:
        if not real.is_relative_to(os.path.realpath(rundir.path)):
            return "lies outside the run's folder"
        if real.is_dir():
            return _folder_damage(real)
        return _file_damage(real) if real.is_file() else "does not exist any more"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _real(rundir: RunDir, path: str) -> str:
    return os.path.realpath(rundir.path / path)


def _step(payload: Mapping[str, Any]) -> int | None:
    step = payload.get("step")
    return step if isinstance(step, int) and not isinstance(step, bool) and 0 <= step <= MAX_STEP else None


def _file_damage(path: Path) -> str:
    size = path.stat().st_size
    if not size:
        return "is empty"
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    if not head.strip(b"\0"):
        return "holds only zeros"
    # torch and numpy write zip archives; their directory is at the end, so one that was cut short has none.
    if head.startswith(b"PK") and not zipfile.is_zipfile(path):
        return "is cut short"
    if path.suffix == ".json" and size <= _LARGEST_JSON and not _is_json(path):
        return "is not whole JSON"
    return ""


def _folder_damage(path: Path) -> str:
    if (path / COMMIT).exists():
        parts = _read_small(path / COMMIT).get("parts")
        if not isinstance(parts, Mapping):
            return f"is damaged ({COMMIT} cannot be read)"
        wrong = [name for name, told in parts.items() if not _has_size(path / name, told)]
        return f"is damaged ({wrong[0]} is not as it was saved)" if wrong else ""
    return "" if any(path.iterdir()) else "is empty"


def _has_size(path: Path, told: Any) -> bool:
    wanted = told.get("bytes") if isinstance(told, Mapping) else None
    return path.is_file() and (wanted is None or path.stat().st_size == wanted)


def _read_small(path: Path) -> dict[str, Any]:
    """The object in a file that a worker wrote; none when it is no such file, or far too large for one."""
    try:
        return (read_json(path) or {}) if path.stat().st_size <= _LARGEST_JSON else {}
    except OSError:
        return {}


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True
