"""The disk space that folders use. Counting a large folder takes a while: never in the thread that draws."""

import os
from collections.abc import Iterator
from pathlib import Path

from mosaic.model.rundir import RunDir


def usage_of(folder: Path) -> dict[str, int]:
    """The bytes on disk that a run uses, by kind. Holes in a spool use none."""
    parts = {"telemetry": 0, "logs": 0, "checkpoints": 0, "other": 0}
    for path in files_below(folder):
        top = path.relative_to(folder).parts[0]
        kind = "telemetry" if top.startswith("telemetry.sqlite") else top if top in parts else "other"
        parts[kind] += _blocks(path)
    control = RunDir(folder).control
    if not control.is_symlink():  # else it is the same folder
        parts["other"] += sum(map(_blocks, files_below(control)))
    return parts


def usage_of_path(path: Path) -> int:
    """The bytes on disk that a file or all files in a folder use."""
    return sum(map(_blocks, files_below(path))) if path.is_dir() and not path.is_symlink() else _blocks(path)


def _blocks(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except FileNotFoundError:
        return 0  # a live run has removed it meanwhile


def files_below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names)


def has_checkpoints(folder: Path) -> bool:
    return any(True for _ in files_below(RunDir(folder).checkpoints))
