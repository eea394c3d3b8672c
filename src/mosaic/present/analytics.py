"""The results of a run that other programs show: TensorBoard, W&B, videos and reports.

Read from the run's analytics.json, and from the usual folders while the run has not written one. The worker wrote all
of it, so nothing outside the run's folder is named, no link is followed, and the number of files is bounded. The files
of an imported run are where it was imported from, which the registry knows.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from mosaic.model.rundir import RunDir
from mosaic.present.run_files import read_run_json

MOST_BYTES = 1 << 20  # of analytics.json; it may list thousands of checkpoints
MOST_FILES = 200
MOST_LOOKED_AT = 5000
VIDEOS = (".mp4", ".webm", ".gif", ".mkv", ".avi", ".mov")
REPORTS = (".html", ".pdf", ".md")


@dataclass(frozen=True)
class ResultFile:
    path: Path
    name: str  # relative to the run's folder, or to that of an imported run
    bytes: int

    @property
    def is_animation(self) -> bool:
        return self.path.suffix.lower() == ".gif"


@dataclass(frozen=True)
class Wandb:
    """What the run has sent, or will send, to Weights & Biases."""

    project: str = ""
    url: str = ""  # http or https; empty: unknown
    offline: tuple[Path, ...] = ()  # folders that `wandb sync` uploads


@dataclass(frozen=True)
class Analytics:
    has_tensorboard: bool = False
    wandb: Wandb | None = None
    videos: tuple[ResultFile, ...] = ()  # newest last
    reports: tuple[ResultFile, ...] = ()
    has_more: bool = False  # there are more files than are listed

    @property
    def is_empty(self) -> bool:
        return not (self.has_tensorboard or self.wandb or self.videos or self.reports)


def read_analytics(run_dir: "str | os.PathLike[str]", origin: str = "") -> Analytics:
    """`origin`: of an imported run, `format:/path`."""
    folder = RunDir(run_dir)
    manifest = read_run_json(folder.analytics, MOST_BYTES) or {}
    artifacts = _object(manifest.get("artifacts"))
    if origin:
        return _imported(Path(origin.partition(":")[2]), artifacts)
    videos, more_videos = _files(folder.path, _inside(folder.path, artifacts.get("videos_dir"), "videos"), VIDEOS, 3)
    reports, more_reports = _files(folder.path, folder.path, REPORTS, 0)
    return Analytics(
        _has_curves(folder.path, artifacts),
        _wandb(folder.path, artifacts),
        videos,
        reports,
        more_videos or more_reports,
    )


def _imported(place: Path, artifacts: Mapping[str, Any]) -> Analytics:
    """What other programs show of an imported run. It may be a single file, and then it has nothing beside it."""
    if not place.is_dir():
        return Analytics()
    videos, more_videos = _files(place, place, VIDEOS, 3)
    reports, more_reports = _files(place, place, REPORTS, 0)
    has_events = any("tfevents" in path.name for path, _ in _walk(place, 0))
    found = _object(artifacts.get("wandb"))
    offline = (place,) if place.name.startswith("offline-run-") else ()
    wandb = Wandb(str(found.get("project") or ""), offline=offline) if found else None
    return Analytics(has_events, wandb, videos, reports, more_videos or more_reports)


def _has_curves(folder: Path, artifacts: Mapping[str, Any]) -> bool:
    logs = _inside(folder, _object(artifacts.get("tensorboard")).get("log_dir"), "tensorboard")
    return logs is not None and next(_walk(logs, 4), None) is not None


def _wandb(folder: Path, artifacts: Mapping[str, Any]) -> Wandb | None:
    found = _object(artifacts.get("wandb"))
    if not found:
        return None
    url = found.get("url")
    is_address = isinstance(url, str) and url.startswith(("https://", "http://"))
    where = _inside(folder, found.get("directory"), "wandb")
    offline = sorted(where.glob("offline-run-*"))[:MOST_FILES] if where else []
    return Wandb(str(found.get("project") or ""), str(url) if is_address else "", tuple(offline))


def _files(
    root: Path, folder: Path | None, endings: tuple[str, ...], depth: int
) -> tuple[tuple[ResultFile, ...], bool]:
    """Regular files with these endings, oldest first, and whether there are more."""
    found = []
    for path, status in _walk(folder, depth) if folder else ():
        if path.suffix.lower() in endings:
            found.append((status.st_mtime, ResultFile(path, str(path.relative_to(root)), status.st_size)))
    newest = sorted(found, key=lambda item: (item[0], item[1].name))[-MOST_FILES:]
    return tuple(file for _, file in newest), len(found) > MOST_FILES


def _walk(folder: Path, depth: int) -> "Iterator[tuple[Path, os.stat_result]]":
    """The regular files below a folder; links are neither followed nor listed."""
    waiting, looked_at = [(folder, depth)], 0
    while waiting:
        here, left = waiting.pop()
        try:
            with os.scandir(here) as found:
                entries = list(islice(found, MOST_LOOKED_AT))
        except OSError:
            continue
        for entry in entries:
            looked_at += 1
            if looked_at > MOST_LOOKED_AT:
                return
            status = _status(entry)
            if status and stat.S_ISDIR(status.st_mode) and left:
                waiting.append((Path(entry.path), left - 1))
            elif status and stat.S_ISREG(status.st_mode):
                yield Path(entry.path), status


def _status(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _inside(folder: Path, named: Any, usual: str) -> Path | None:
    """The folder that the manifest names, or the usual one; None if it is not a folder of this run."""
    path = folder / (named if isinstance(named, str) and named and "\0" not in named else usual)
    root = os.path.realpath(folder)
    is_inside = os.path.realpath(path).startswith(root + os.sep)
    return path if is_inside and os.path.isdir(path) else None


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
