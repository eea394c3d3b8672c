"""Finds old checkpoints: those of a run that is over, except its best and its last.

Only numbered series of checkpoints at the top of checkpoints/ count: checkpoint-000000050000.pt, epoch-00000007/,
model_5000_steps.zip. Everything else is kept: settings, replay blocks, rank0.pt beside rank1.pt.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.model.durable import read_json
from mosaic.model.file_locks import is_locked
from mosaic.model.rundir import RunDir
from mosaic.present.folder_size import usage_of_path

if TYPE_CHECKING:
    from mosaic.client import Run

TIME = r"(?:checkpoint|ckpt|epoch|step|iteration|iter|update)s?"
NUMBERED = re.compile(rf"((?:.*[^a-z])?{TIME}[-_.=]?)(\d+)(\D*)|(.*?\D)(\d+)([-_.]?{TIME}(?:\W.*)?)", re.I)
SIDECAR = ".commit.json"  # written beside a checkpoint that is a file; it is kept or removed with it
COMMIT = "commit.json"  # some workers write it last: a folder without it is an incomplete checkpoint


@dataclass(frozen=True)
class OldCheckpoints:
    """The old checkpoints of one run."""

    run: "Run"
    paths: tuple[Path, ...]
    bytes: int


def find_old_checkpoints(runs: "Iterable[Run]", live: "Iterable[Run]") -> tuple[list[OldCheckpoints], list[str]]:
    """The old checkpoints, run by run, and the runs that are skipped, with the reason. `live`: with their configs."""
    needed = [f"{run.parent_run_id} {json.dumps(run.config)}" for run in live]
    found, kept = [], []
    for run in (run for run in runs if run.state.is_over):
        rundir = RunDir(run.run_dir)
        paths: tuple[Path, ...] = ()
        try:
            reason = _why_kept(run, rundir, needed)
            paths = () if reason else tuple(old_in(rundir))
        except OSError as error:  # its worker closed the folder
            reason = f"its checkpoints cannot be read ({error.strerror})"
        if reason:
            kept.append(f"run {run.run_id} ({run.name}): {reason}")
        elif paths:
            found.append(OldCheckpoints(run, paths, sum(map(usage_of_path, paths))))
    return found, kept


def _why_kept(run: "Run", rundir: RunDir, needed: list[str]) -> str:
    if any(run.run_id in text for text in needed):
        return "a live run was started from it"
    if is_locked(rundir.owner_lock):
        return "its processes are still running"
    if best_of(rundir) is None:
        return "best.json, which names its best checkpoint, cannot be read"
    return ""


def old_in(rundir: RunDir) -> Iterator[Path]:
    """All members of each numbered series, except the last complete one, the best, and targets of symbolic links."""
    keep = {path.resolve() for path in (best_of(rundir) or [])}
    entries = sorted(rundir.checkpoints.iterdir()) if rundir.checkpoints.is_dir() else []
    keep |= {entry.resolve() for entry in entries if entry.is_symlink()}
    for series in _series(entry for entry in entries if not entry.is_symlink()):
        complete = [entry for entry in series if _is_complete(entry, series)]
        last = complete[-1] if complete else series[-1]
        for entry in series:
            if entry != last and not _holds(entry.resolve(), keep):
                yield from (path for path in (entry, Path(f"{entry}{SIDECAR}")) if path.exists())


def _series(entries: Iterable[Path]) -> list[list[Path]]:
    """Groups of entries whose names differ only in their last number, sorted by that number."""
    groups: dict[tuple[str, str, bool], list[tuple[int, Path]]] = {}
    for entry in entries:
        match = NUMBERED.fullmatch(entry.name)
        if match and not entry.name.startswith(".") and not entry.name.endswith(SIDECAR):
            before, number, after = match.groups()[:3] if match[2] else match.groups()[3:]
            groups.setdefault((before, after, entry.is_dir()), []).append((int(number), entry))
    return [[entry for _, entry in sorted(group)] for group in groups.values()]


def _is_complete(entry: Path, series: list[Path]) -> bool:
    if not entry.is_dir():
        return entry.stat().st_size > 0
    return (entry / COMMIT).exists() or not any((other / COMMIT).exists() for other in series)


def best_of(rundir: RunDir) -> list[Path] | None:
    """The paths that best.json may mean, relative to its folder or the run's; empty without it, None if unreadable."""
    folder = rundir.checkpoints / "best"
    if not os.path.lexists(folder / "best.json"):
        return []
    try:
        named = (read_json(folder / "best.json") or {}).get("path")
    except OSError:
        return None
    if not isinstance(named, str) or "\0" in named:
        return None
    return [place / named for place in (folder, rundir.checkpoints, rundir.path)]


def _holds(entry: Path, keep: set[Path]) -> bool:
    return any(path == entry or entry in path.parents for path in keep)
