"""`mosaic gc`: list or delete unused files, old runs and, with --old-checkpoints, old checkpoints."""

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.connection import connected, refuse_host
from mosaic.cli.durations import parse_duration
from mosaic.cli.file_locks import is_locked
from mosaic.cli.old_checkpoints import find_old_checkpoints
from mosaic.cli.runs import parse_states
from mosaic.cli.verb import add_verb
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.folder import remove_folder
from mosaic.model.rundir import AREAS, RunDir, StateRoot
from mosaic.model.ulid import is_ulid
from mosaic.present.durations import format_duration
from mosaic.present.folder_size import has_checkpoints, usage_of, usage_of_path
from mosaic.present.scores import count
from mosaic.present.text import size

if TYPE_CHECKING:
    from mosaic.cli.old_checkpoints import OldCheckpoints
    from mosaic.cli.verb import Verbs
    from mosaic.client import Run, TrainerClient

# A submit writes files before it registers the run, so younger files may belong to a submit in progress.
YOUNG_S = 3600.0
EXAMPLES = """
mosaic gc
mosaic gc --older-than 30d --state FAULTED,CANCELLED
mosaic gc --older-than 90d --yes
mosaic gc --old-checkpoints --older-than 7d            all checkpoints but the best and the last of each run
"""


def add_verbs(verbs: "Verbs") -> None:
    details = "Nothing is deleted without --yes.\nCheckpoints are listed and deleted only with --old-checkpoints."
    parser = add_verb(verbs, "gc", collect, "list unused files and old runs", EXAMPLES, details)
    parser.add_argument(
        "--older-than", type=parse_duration, metavar="30d", help="also list runs that ended at least this long ago"
    )
    parser.add_argument("--state", type=parse_states, default=parse_states("over"), help="only runs in these states")
    parser.add_argument(
        "--old-checkpoints",
        action="store_true",
        help="list checkpoints of runs that are over instead, except the best and the last of each run",
    )
    parser.add_argument("--yes", action="store_true", help="delete what is listed")


@dataclass(frozen=True)
class Leftover:
    """Something that gc may delete: a run that is over, files that belong to no run, or old checkpoints."""

    what: str
    bytes: int
    run_id: str = ""
    paths: tuple[Path, ...] = ()


def collect(args: argparse.Namespace) -> int:
    refuse_host(args, "gc")
    root = StateRoot.from_environment()
    with connected(args) as client:
        runs = client.list_runs().runs
        found, kept = _old_checkpoints(client, runs, args) if args.old_checkpoints else _leftovers(root, runs, args)
        failed = 0
        for leftover in found:
            problem = _try_to_delete(leftover, client) if args.yes else ""
            failed += bool(problem)
            done = "not deleted" if problem else "deleted" if args.yes else "would delete"
            print(f"{done}  {size(leftover.bytes):>10}  {leftover.what}{f': {problem}' if problem else ''}")
    for what in kept:
        print(f"kept  {what}")
    _sum_up(found, args.yes)
    return 1 if failed else 0


def _leftovers(root: StateRoot, runs: "tuple[Run, ...]", args: argparse.Namespace) -> tuple[list[Leftover], list[str]]:
    found, kept = find_leftovers(root, {run.run_id for run in runs}, time.time())
    old, kept_runs = find_old_runs(runs, args, time.time())
    return found + old, [f"{what}: it has checkpoints" for what in kept + kept_runs]


def _old_checkpoints(
    client: "TrainerClient", runs: "tuple[Run, ...]", args: argparse.Namespace
) -> tuple[list[Leftover], list[str]]:
    """The old checkpoints of all runs that are over, or of those that match --state and --older-than."""
    now, least_s = time.time(), args.older_than or 0.0
    live = [client.get_run(run.run_id) for run in runs if not run.state.is_over]
    chosen = [run for run in runs if run.state in args.state and now - run.updated_at >= least_s]
    found, kept = find_old_checkpoints(chosen, live)
    return [Leftover(_named(old), old.bytes, paths=old.paths) for old in found], kept


def _named(old: "OldCheckpoints") -> str:
    names = [path.name for path in old.paths]
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"run {old.run.run_id} ({old.run.name}): {shown}"


def _sum_up(leftovers: list[Leftover], deleted: bool) -> None:
    total = size(sum(leftover.bytes for leftover in leftovers))
    if not leftovers:
        print("Nothing to delete.")
    elif deleted:
        print(f"Freed {total}.")
    else:
        print(f"{total} in {count(len(leftovers), 'item')}. Nothing was deleted; add --yes to delete.")


def find_old_runs(runs: "tuple[Run, ...]", args: argparse.Namespace, now: float) -> tuple[list[Leftover], list[str]]:
    """Runs that ended long ago; those with checkpoints are kept."""
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
    """Folders and config files of runs that the registry does not know; folders with checkpoints are kept."""
    found, kept = [], []
    for folder in _stray_folders(root, known):
        if _age(folder, now) < YOUNG_S or is_locked(RunDir(folder).owner_lock):
            continue
        if has_checkpoints(folder):
            kept.append(f"folder {folder}")
        else:
            found.append(
                Leftover(f"folder without a run: {folder}", sum(usage_of(folder).values()), paths=_both(folder))
            )
    for folder in _stray_controls(root, known):
        if _age(folder, now) >= YOUNG_S and not is_locked(folder / RunDir(folder).owner_lock.name):
            found.append(Leftover(f"control files without a run: {folder}", usage_of_path(folder), paths=(folder,)))
    files = [file for file in _stray_configs(root, known) if _age(file, now) >= YOUNG_S]
    if files:
        found.append(
            Leftover(
                f"{count(len(files), 'config file')} without a run",
                sum(map(usage_of_path, files)),
                paths=tuple(files),
            )
        )
    return found, kept


def _stray_folders(root: StateRoot, known: set[str]) -> Iterator[Path]:
    for area in AREAS:
        place = root.area(area)
        names = sorted(os.listdir(place)) if place.is_dir() else []
        yield from (place / name for name in names if is_ulid(name) and name not in known)


def _stray_controls(root: StateRoot, known: set[str]) -> Iterator[Path]:
    """Control folders of runs that the registry does not know and that have no folder."""
    names = sorted(os.listdir(root.control)) if root.control.is_dir() else []
    for name in names:
        has_folder = any(os.path.lexists(root.area(area) / name) for area in AREAS)
        if is_ulid(name) and name not in known and not has_folder:
            yield root.control / name


def _both(folder: Path) -> tuple[Path, ...]:
    """A run's folder and its control folder, if it has one."""
    control = RunDir(folder).control
    return (folder, control) if os.path.lexists(control) else (folder,)


def _stray_configs(root: StateRoot, known: set[str]) -> list[Path]:
    files = sorted(root.configs.glob("*-*.json")) if root.configs.is_dir() else []
    return [file for file in files if is_ulid(run_of(file)) and run_of(file) not in known]


def run_of(config_file: Path) -> str:
    return config_file.stem.rpartition("-")[2]


def _age(path: Path, now: float) -> float:
    """Seconds since its last change; 0 if it cannot be read, so that it is left alone."""
    try:
        return now - path.lstat().st_mtime
    except OSError:
        return 0.0


def _try_to_delete(leftover: Leftover, client: "TrainerClient") -> str:
    """Delete it; why this is not possible otherwise. One that cannot be deleted does not stop the others."""
    try:
        if leftover.run_id:
            client.delete_run(leftover.run_id)
    except NoDaemon:
        raise
    except MosaicError as error:
        return str(error)
    return "; ".join(problem for path in leftover.paths for problem in remove_folder(path).problems)
