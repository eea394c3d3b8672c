"""`mosaic du` and `mosaic gc`: what runs cost on disk, and what of it nobody needs."""

import argparse
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, refuse_host
from mosaic.cli.durations import format_duration, parse_duration
from mosaic.cli.flocks import is_locked
from mosaic.cli.paint import size
from mosaic.cli.runs import parse_states, short_id
from mosaic.cli.table import clip, render_table
from mosaic.cli.verb import add_json, add_verb
from mosaic.model.rundir import AREAS, RunDir, StateRoot
from mosaic.model.ulid import is_ulid

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

# A submit writes its files before its row: what is younger than this may belong to one that is under way.
YOUNG_S = 3600.0


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs, "du", show_usage, "show what the runs take on disk, largest first", "mosaic du\nmosaic du --json"
    )
    add_json(parser)

    parser = add_verb(
        verbs,
        "gc",
        collect,
        "find what nobody needs; deletes only with --yes, and never a checkpoint",
        "mosaic gc\nmosaic gc --older-than 30d --state FAULTED,CANCELLED\nmosaic gc --older-than 90d --yes",
    )
    parser.add_argument("--older-than", type=parse_duration, metavar="30d", help="also runs that ended so long ago")
    parser.add_argument("--state", type=parse_states, default=parse_states("over"), help="only runs in these states")
    parser.add_argument("--yes", action="store_true", help="delete; without it nothing is touched")


def show_usage(args: argparse.Namespace) -> int:
    refuse_host(args, "du")
    with connected(args) as client:
        runs = client.list_runs().runs
    usage = sorted(((run, usage_of(Path(run.run_dir))) for run in runs), key=lambda pair: -sum(pair[1].values()))
    if args.json:
        print(
            json.dumps(
                [{"run_id": run.run_id, "bytes": sum(parts.values()), **parts} for run, parts in usage], indent=1
            )
        )
        return 0
    rows = [_usage_row(run, parts) for run, parts in usage]
    total = sum(sum(parts.values()) for _, parts in usage)
    if rows:
        headings = ("RUN", "NAME", "STATE", "TELEMETRY", "LOGS", "CHECKPOINTS", "OTHER", "TOTAL")
        print(render_table(headings, rows, right=frozenset(range(3, 8))))
    root = StateRoot.from_environment().path
    free = shutil.disk_usage(root).free
    print(f"{len(rows)} runs take {size(total)} in {root}; {size(free)} are free.")
    return 0


def _usage_row(run: "Run", parts: dict[str, int]) -> tuple[str, ...]:
    sizes = [size(parts[name]) for name in ("telemetry", "logs", "checkpoints", "other")]
    return (short_id(run.run_id), clip(run.name, 24), str(run.state), *sizes, size(sum(parts.values())))


def usage_of(folder: Path) -> dict[str, int]:
    """Bytes on disk by kind; holes in a spool take none."""
    parts = {"telemetry": 0, "logs": 0, "checkpoints": 0, "other": 0}
    for path in files_below(folder):
        top = path.relative_to(folder).parts[0]
        kind = "telemetry" if top.startswith("telemetry.sqlite") else top if top in parts else "other"
        try:
            parts[kind] += path.lstat().st_blocks * 512
        except FileNotFoundError:
            pass  # a live run's file that is gone by now
    return parts


def files_below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names)


@dataclass(frozen=True)
class Leftover:
    """Something gc may delete: a run that is over, or files that no run in the registry owns."""

    what: str
    bytes: int
    run_id: str = ""
    paths: tuple[Path, ...] = ()


def collect(args: argparse.Namespace) -> int:
    refuse_host(args, "gc")
    root = StateRoot.from_environment()
    with connected(args) as client:
        runs = client.list_runs().runs
        found, kept = find_leftovers(root, {run.run_id for run in runs}, time.time())
        old, kept_runs = find_old_runs(runs, args, time.time())
        for leftover in found + old:
            if args.yes:
                _delete(leftover, client)
            print(f"{'deleted' if args.yes else 'would delete'}  {size(leftover.bytes):>10}  {leftover.what}")
    for what in kept + kept_runs:
        print(f"kept, for its checkpoints  {what}")
    _sum_up(found + old, args.yes)
    return 0


def _sum_up(leftovers: list[Leftover], deleted: bool) -> None:
    total = size(sum(leftover.bytes for leftover in leftovers))
    if not leftovers:
        print("Nothing to collect.")
    elif deleted:
        print(f"Freed {total}.")
    else:
        print(f"{total} in {len(leftovers)} item(s). Nothing was deleted; do it with --yes.")


def find_old_runs(runs: "tuple[Run, ...]", args: argparse.Namespace, now: float) -> tuple[list[Leftover], list[str]]:
    """Runs that ended long ago; those with checkpoints are only named."""
    if args.older_than is None:
        return [], []
    old, kept = [], []
    for run in runs:
        if run.state not in args.state or not run.state.is_over or now - run.updated_at < args.older_than:
            continue
        what = f"run {run.run_id} ({run.name}), {run.state} {format_duration(now - run.updated_at)} ago"
        if has_checkpoints(Path(run.run_dir)):
            kept.append(what)
        else:
            old.append(Leftover(what, sum(usage_of(Path(run.run_dir)).values()), run_id=run.run_id))
    return old, kept


def find_leftovers(root: StateRoot, known: set[str], now: float) -> tuple[list[Leftover], list[str]]:
    """Folders and config files of runs that the registry does not know; folders with checkpoints are only named."""
    found, kept = [], []
    for folder in _stray_folders(root, known):
        if now - folder.stat().st_mtime < YOUNG_S or is_locked(RunDir(folder).owner_lock):
            continue
        if has_checkpoints(folder):
            kept.append(f"folder {folder}")
        else:
            found.append(Leftover(f"folder of no run: {folder}", sum(usage_of(folder).values()), paths=(folder,)))
    files = [file for file in _stray_configs(root, known) if now - file.stat().st_mtime >= YOUNG_S]
    if files:
        found.append(
            Leftover(f"{len(files)} config file(s) of no run", sum(f.stat().st_size for f in files), paths=tuple(files))
        )
    return found, kept


def _stray_folders(root: StateRoot, known: set[str]) -> Iterator[Path]:
    for area in AREAS:
        place = root.area(area)
        names = sorted(os.listdir(place)) if place.is_dir() else []
        yield from (place / name for name in names if is_ulid(name) and name not in known)


def _stray_configs(root: StateRoot, known: set[str]) -> list[Path]:
    files = sorted(root.configs.glob("*-*.json")) if root.configs.is_dir() else []
    return [file for file in files if is_ulid(run_of(file)) and run_of(file) not in known]


def run_of(config_file: Path) -> str:
    return config_file.stem.rpartition("-")[2]


def has_checkpoints(folder: Path) -> bool:
    return any(True for _ in files_below(RunDir(folder).checkpoints))


def _delete(leftover: Leftover, client: "TrainerClient") -> None:
    if leftover.run_id:
        client.delete_run(leftover.run_id)
    for path in leftover.paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
