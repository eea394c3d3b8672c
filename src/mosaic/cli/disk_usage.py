"""`mosaic du`: the disk usage of runs, environments and caches."""

import argparse
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, refuse_host
from mosaic.cli.runs import short_id
from mosaic.cli.table import clip, render_table
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.file_locks import is_locked
from mosaic.model.rundir import StateRoot
from mosaic.model.xdg import xdg_folder
from mosaic.present.folder_size import files_below, usage_of
from mosaic.present.scores import count
from mosaic.present.text import printable, size

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run

UNFINISHED = (".new-", ".old-")  # see catalog/place.py


def add_verbs(verbs: "Verbs") -> None:
    summary = "show the disk usage of runs, environments and caches"
    add_json(add_verb(verbs, "du", show_usage, summary, "mosaic du\nmosaic du --json"))


def show_usage(args: argparse.Namespace) -> int:
    refuse_host(args, "du")
    root = StateRoot.from_environment()
    with connected(args) as client:
        runs = client.list_runs().runs
    problems: dict[str, list[str]] = {run.run_id: [] for run in runs}
    measured = ((run, usage_of(Path(run.run_dir), problems[run.run_id])) for run in runs)
    usage = sorted(measured, key=lambda pair: -sum(pair[1].values()))
    items = sorted(Census().items(root), key=lambda item: -item.bytes)
    if args.json:
        rows = [_usage_object(run, parts, problems[run.run_id]) for run, parts in usage]
        print(json.dumps(rows + [item.to_dict() for item in items], indent=1))
        return 0
    _print_runs(usage)
    for found in filter(None, problems.values()):
        print(f"Not counted: {_shortened(found)}.")
    cells = [(item.kind, item.name, size(item.bytes), item.note) for item in items]
    print(render_table(("KIND", "NAME", "SIZE", "NOTE"), cells, right=frozenset({2})))
    print(_sum(usage, items, root))
    return 0


def _usage_object(run: "Run", parts: dict[str, int], problems: list[str]) -> dict[str, object]:
    note = _shortened(problems) if problems else ""
    return {"kind": "run", "run_id": run.run_id, "bytes": sum(parts.values()), **parts, "note": note}


def _shortened(problems: list[str]) -> str:
    more = f", and {len(problems) - 1} more of this run" if len(problems) > 1 else ""
    return printable(problems[0][:300]) + more


def _print_runs(usage: "list[tuple[Run, dict[str, int]]]") -> None:
    if usage:
        headings = ("RUN", "NAME", "STATE", "TELEMETRY", "LOGS", "CHECKPOINTS", "OTHER", "TOTAL")
        rows = [_usage_row(run, parts) for run, parts in usage]
        print(render_table(headings, rows, right=frozenset(range(3, 8))) + "\n")


def _usage_row(run: "Run", parts: dict[str, int]) -> tuple[str, ...]:
    sizes = [size(parts[name]) for name in ("telemetry", "logs", "checkpoints", "other")]
    return (short_id(run.run_id), clip(run.name, 24), str(run.state), *sizes, size(sum(parts.values())))


def _sum(usage: "list[tuple[Run, dict[str, int]]]", items: "list[Item]", root: StateRoot) -> str:
    runs = size(sum(sum(parts.values()) for _, parts in usage))
    kinds = {"environment": "environments", "cache": "caches"}
    others = [f"{size(sum(i.bytes for i in items if i.kind == kind))} in {plural}" for kind, plural in kinds.items()]
    free = size(shutil.disk_usage(root.path).free)
    return f"Total: {runs} in {count(len(usage), 'run')}, {', '.join(others)}. Free in {root.path}: {free}."


@dataclass(frozen=True)
class Item:
    """Something other than a run that uses disk space."""

    kind: str  # environment, unfinished environment, cache, or MOSAIC's own files
    name: str
    bytes: int
    note: str = ""

    def to_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "name": self.name, "bytes": self.bytes, "note": self.note}


@dataclass
class Census:
    """Counts each file once: uv hard-links a package's files into its cache and into every environment."""

    _seen: set[tuple[int, int]] = field(default_factory=set)

    def items(self, root: StateRoot) -> Iterator[Item]:
        # Environments first: a file that they share with the cache is only freed when they are removed.
        for envs in (root.envs, root.script_envs):
            yield from self._environments(envs)
        yield self._item("own files", "registry and configs", [root.configs, *_files_in(root.trainer)])
        yield self._item("own files", "telemetry index and daemon logs", [root.telemetry, root.logs])
        yield self._item("cache", "workers' answers", [root.answers])
        for folder in _caches(root):
            item = self._item("cache", str(folder), [folder], _note_of(folder))
            if item.bytes:
                yield item

    def _environments(self, envs: Path) -> Iterator[Item]:
        is_changing = is_locked(envs / ".lock")
        for folder in sorted(envs.iterdir()) if envs.is_dir() else []:
            if folder.name.startswith(UNFINISHED):
                note = (
                    "an install is running"
                    if is_changing
                    else "left by a killed install; remove with: mosaic doctor --fix"
                )
                yield self._item("unfinished", folder.name, [folder], note)
            elif folder.is_dir() and not folder.name.startswith("."):
                yield self._item("environment", folder.name, [folder])

    def _item(self, kind: str, name: str, places: list[Path], note: str = "") -> Item:
        return Item(kind, name, sum(map(self._count, places)), note)

    def _count(self, place: Path) -> int:
        total = 0
        for path in files_below(place) if os.path.isdir(place) else [place]:
            try:
                facts = path.lstat()
            except OSError:
                continue  # removed meanwhile, or not readable for this user
            if (facts.st_dev, facts.st_ino) not in self._seen:
                self._seen.add((facts.st_dev, facts.st_ino))
                total += facts.st_blocks * 512
        return total


def _files_in(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _caches(root: StateRoot) -> list[Path]:
    """Folders that workers and installers use as caches: unknown folders of the root, uv's cache and ours."""
    own = {root.trainer, root.telemetry, root.logs, root.envs}
    inside = [path for path in _folders_in(root.path) if path not in own]
    base = xdg_folder("XDG_CACHE_HOME", ".cache")
    outside = [Path(os.environ.get("UV_CACHE_DIR") or base / "uv"), base / "mosaic"]
    # A folder comes after its subfolders, so only its remaining files are counted for it.
    nested = [place for folder in inside for place in (*_folders_in(folder), folder)]
    return [*nested, *(folder for folder in outside if folder.is_dir())]


def _folders_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _note_of(folder: Path) -> str:
    from mosaic.catalog.uv import InstallFailed, find_uv

    if folder.name != "uv":
        return ""
    try:
        return f"shrink it with: {(shutil.which('uv') and 'uv') or find_uv()} cache prune"
    except InstallFailed:
        return ""
