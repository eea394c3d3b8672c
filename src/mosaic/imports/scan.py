"""Finds runs of other programs below a folder. Links that lead out of it are named and not followed."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mosaic.imports.dreamer import METRICS, SCORES, Dreamer
from mosaic.imports.files import read_yaml
from mosaic.imports.mlflow import META, Mlflow
from mosaic.imports.ray import PROGRESS, RESULTS, Ray
from mosaic.imports.sb3 import EVALUATIONS, StableBaselines3, is_progress, monitor_files
from mosaic.imports.source import Found, Source
from mosaic.imports.tensorboard import TensorBoard, event_files
from mosaic.imports.wandb import Wandb, log_files

READERS: dict[str, type[Source]] = {
    reader.format: reader for reader in (TensorBoard, Wandb, Ray, StableBaselines3, Dreamer, Mlflow)
}
MOST_FOLDERS = 200_000
DEEPEST = 32
LEFT = frozenset({".git", "__pycache__", "node_modules", ".venv", ".ipynb_checkpoints"})
CLOSED = ("wandb", "ray", "mlflow", "dreamer")  # what is below such a run belongs to it


@dataclass
class Scan:
    """The runs below some paths, and what was not looked at."""

    found: list[Found] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _folders: int = 0

    def add(self, path: Path) -> None:
        """Look at a file or folder that the user has named; OSError if there is none."""
        real = Path(os.path.realpath(path, strict=True))
        if real.is_dir():
            before = len(self.found)
            for folder, names in self._walk(real):
                self._look_at(folder, names, real)
            if len(self.found) == before:
                self.problems.append(f"{path}: no run of a known format was found")
            return
        one = next((found for found in found_in(real.parent, [real.name]) if real.name in found.files), None)
        if one is None:
            self.problems.append(f"{path}: its format is not known")
        else:
            # The whole folder: its event files are one run, whichever of them was named.
            self._look_at(real.parent, _names(real.parent), real.parent, only=one.format)

    def _look_at(self, folder: Path, names: list[str], root: Path, only: str = "") -> None:
        for found in found_in(folder, names):
            name = str(folder.relative_to(root)) if folder != root else folder.name
            one = Found(found.format, folder, found.files, name)
            if only in ("", found.format) and one not in self.found:
                self.found.append(one)

    def _walk(self, root: Path) -> Iterator[tuple[Path, list[str]]]:
        waiting = [(root, 0)]
        while waiting:
            folder, depth = waiting.pop()
            self._folders += 1
            if self._folders > MOST_FOLDERS or depth > DEEPEST:
                self.problems.append(f"{folder}: there are too many folders; name those with runs one by one")
                return
            files, folders = self._entries(folder, root)
            if {"machine-id", "place.json"} <= set(files):
                self.problems.append(f"{folder}: is a state folder of MOSAIC; its runs are not imported")
                continue
            yield folder, files
            if not any(found.format in CLOSED for found in found_in(folder, files)):
                waiting += [(folder / name, depth + 1) for name in reversed(folders)]

    def _entries(self, folder: Path, root: Path) -> tuple[list[str], list[str]]:
        files, folders = list[str](), list[str]()
        try:
            with os.scandir(folder) as entries:
                for entry in sorted(entries, key=lambda entry: entry.name):
                    if entry.is_symlink():
                        self._note_link(entry, root)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    else:
                        files.append(entry.name)
        except OSError as error:
            self.problems.append(f"{folder}: cannot be read ({error.strerror})")
        return files, [name for name in folders if name not in LEFT]

    def _note_link(self, entry: "os.DirEntry[str]", root: Path) -> None:
        target = os.path.realpath(entry.path)
        is_inside = target == str(root) or target.startswith(f"{root}{os.sep}")
        if not is_inside and os.path.isdir(target):
            self.problems.append(
                f"{entry.path}: is a link out of the folder, which is not followed. Name {target} itself"
            )


def found_in(folder: Path, names: list[str]) -> list[Found]:
    """The runs whose files lie directly in this folder."""
    known = set(names)
    if META in known and _is_mlflow_run(folder):
        return [Found("mlflow", folder, (META,))]
    if logs := log_files(names):
        return [Found("wandb", folder, tuple(logs))]
    if metrics := [name for name in (SCORES, METRICS) if name in known]:
        return [Found("dreamer", folder, tuple(metrics))]
    has_progress = PROGRESS in known and is_progress(folder / PROGRESS)
    if RESULTS in known or (PROGRESS in known and not has_progress):
        return [Found("ray", folder, tuple(name for name in (RESULTS, PROGRESS) if name in known))]
    ours = [
        *monitor_files(names),
        *([EVALUATIONS] if EVALUATIONS in known else []),
        *([PROGRESS] if has_progress else []),
    ]
    events = event_files(names)
    if ours:
        return [Found("sb3", folder, (*ours, *events))]
    return [Found("tensorboard", folder, tuple(events))] if events else []


def _is_mlflow_run(folder: Path) -> bool:
    meta = read_yaml(folder / META)
    return "run_id" in meta or "run_uuid" in meta


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if not entry.is_symlink() and not entry.is_dir())


def open_source(found: Found, cursor: dict[str, Any]) -> Source:
    """The reader of a run, which continues at the cursor of an earlier import."""
    return READERS[found.format](found, cursor)
