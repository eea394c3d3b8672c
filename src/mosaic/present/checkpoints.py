"""The checkpoints on this machine, newest first: in the folders of trainings, custom scripts and evaluations."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mosaic_sdk.names import BEST, BEST_FILE, COMMIT_FILE

from mosaic.model.durable import read_json
from mosaic.model.rundir import AREAS, StateRoot
from mosaic.present.text import printable, size

_SIDECAR = f".{COMMIT_FILE}"
_NUMBER = re.compile(r"\d+")
_LARGEST_JSON = 1 << 20


@dataclass(frozen=True)
class CheckpointFile:
    """A checkpoint in the folder of a run: a file, or a folder."""

    run_id: str
    area: str
    path: str
    saved_at: float  # unix seconds
    bytes: int
    step: int | None = None
    is_best: bool = False  # it has the best evaluation

    @property
    def label(self) -> str:
        """`step 50,000 · 1.2 MB · best`."""
        step = f"step {self.step:,}" if self.step is not None else printable(os.path.basename(self.path))
        return " · ".join((step, size(self.bytes), *(("best",) if self.is_best else ())))


def find_checkpoints(root: StateRoot, run_id: str = "") -> list[CheckpointFile]:
    """All checkpoints, or those of one run, newest first. Unfinished and unreadable ones are left out."""
    folders = [folder for area in AREAS for folder in _folders(root.area(area), run_id)]
    return sorted((found for folder in folders for found in _in_run(folder)), key=lambda found: -found.saved_at)


def _folders(area: Path, run_id: str) -> Iterator[Path]:
    try:
        with os.scandir(area) as entries:
            names = [entry.name for entry in entries if not run_id or entry.name == run_id]
    except OSError:
        return
    yield from (area / name / "checkpoints" for name in names)


def _in_run(folder: Path) -> Iterator[CheckpointFile]:
    best = folder / BEST
    about = _read(best / BEST_FILE)
    for path in _entries(folder):
        if path.name != BEST and (found := _found(path, folder.parent)):
            yield found
    for path in _entries(best):
        is_named = os.path.basename(str(about.get("path", ""))) == path.name
        if is_named and (found := _found(path, folder.parent, about.get("step"), is_best=True)):
            yield found


def _entries(folder: Path) -> list[Path]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return [folder / name for name in names if not name.startswith(".") and not name.endswith((".json.tmp", _SIDECAR))]


def _found(path: Path, run: Path, step: Any = None, is_best: bool = False) -> CheckpointFile | None:
    try:
        if path.is_dir():
            commit = path / COMMIT_FILE
            # Written last: without it the checkpoint is unfinished.
            if not commit.is_file():
                return None
            parts = [entry.stat() for entry in path.iterdir()]
            about, count = _read(commit), sum(part.st_size for part in parts)
        elif path.suffix == ".tmp" or path.name == BEST_FILE:
            return None
        else:
            about, count = _read(path.with_name(path.name + _SIDECAR)), path.stat().st_size
        saved_at = path.stat().st_mtime
    except OSError:
        return None
    return CheckpointFile(
        run.name, run.parent.name, str(path), saved_at, count, _step(step, about.get("step"), path), is_best
    )


def _step(*candidates: Any) -> int | None:
    """The recorded step, else the last number in the file's name."""
    *recorded, path = candidates
    for step in recorded:
        if isinstance(step, int) and not isinstance(step, bool) and step >= 0:
            return step
    numbers = _NUMBER.findall(path.stem)
    return int(numbers[-1]) if numbers and len(numbers[-1]) < 19 else None


def _read(path: Path) -> dict[str, Any]:
    try:
        return read_json(path, _LARGEST_JSON) or {}
    except OSError:
        return {}
