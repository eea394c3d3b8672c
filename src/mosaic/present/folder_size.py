"""The disk space that folders use. Counting a large folder takes a while: never in the thread that draws."""

import os
from collections.abc import Iterator
from pathlib import Path

from mosaic.model.rundir import RunDir


def usage_of(folder: Path, problems: list[str] | None = None) -> dict[str, int]:
    """The bytes on disk that a run uses, by kind. Holes in a spool use none. `problems` gets what cannot be read."""
    parts = {"telemetry": 0, "logs": 0, "checkpoints": 0, "other": 0}
    for path in files_below(folder, problems):
        top = path.relative_to(folder).parts[0]
        kind = "telemetry" if top.startswith("telemetry.sqlite") else top if top in parts else "other"
        parts[kind] += _blocks(path)
    control = RunDir(folder).control
    if not control.is_symlink():  # else it is the same folder
        parts["other"] += sum(map(_blocks, files_below(control)))
    return parts


def usage_of_path(path: Path) -> int:
    """The bytes on disk that a file or all files in a folder use."""
    return sum(map(_blocks, files_below(path))) if os.path.isdir(path) and not path.is_symlink() else _blocks(path)


def _blocks(path: Path) -> int:
    try:
        return path.lstat().st_blocks * 512
    except OSError:
        return 0  # a live run has removed it meanwhile, or its folder is closed


def files_below(folder: Path, problems: list[str] | None = None) -> Iterator[Path]:
    """Everything below a folder except folders, which may be nested as deeply as a worker likes."""
    waiting = [str(folder)]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield Path(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        except OSError as error:
            if problems is not None:
                problems.append(f"{place} cannot be read ({error.strerror})")


def has_checkpoints(folder: Path) -> bool:
    """Whether a run has checkpoints, or a folder of them that cannot be read."""
    problems: list[str] = []
    return any(True for _ in files_below(RunDir(folder).checkpoints, problems)) or bool(problems)
