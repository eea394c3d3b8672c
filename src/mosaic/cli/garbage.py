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
from mosaic.cli.old_checkpoints import find_old_checkpoints
from mosaic.cli.runs import parse_states
from mosaic.cli.verb import add_verb
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.file_locks import is_locked
from mosaic.model.folder import remove_folder
from mosaic.model.registry_origin import RegistryOrigin
from mosaic.model.rundir import AREAS, RunDir, StateRoot
from mosaic.model.ulid import is_ulid, time_of
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
    details = (
        "Nothing is deleted without --yes.\nCheckpoints are listed and deleted only with --old-checkpoints.\n"
        "Folders that are older than the registry are kept: they may belong to runs that it has lost."
    )
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
    parser.add_argument(
        "--older-than-registry",
        action="store_true",
        help="also list folders of unknown runs that are older than the registry, which may have lost these runs",
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
    since = 0.0 if args.older_than_registry else RegistryOrigin.read(root).known_since
    found, kept = find_leftovers(root, {run.run_id for run in runs}, time.time(), since)
    old, kept_runs = find_old_runs(runs, args, time.time())
    return found + old, kept + [f"{what}: it has checkpoints" for what in kept_runs]


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
        ended_at = _ended_at(run)
        if run.state not in args.state or not run.state.is_over or now - ended_at < args.older_than:
            continue
        how = "imported" if run.origin else str(run.state)
        what = f"run {run.run_id} ({run.name}), {how} {format_duration(now - ended_at)} ago"
        if has_checkpoints(Path(run.run_dir)):
            kept.append(what)
        else:
            old.append(Leftover(what, sum(usage_of(Path(run.run_dir)).values()), run_id=run.run_id))
    return old, kept


def _ended_at(run: "Run") -> float:
    """When a run became unused at the latest. An imported one has the times of its origin, which may be years old."""
    return max(run.updated_at, time_of(run.run_id)) if run.origin else run.updated_at


def find_leftovers(
    root: StateRoot, known: set[str], now: float, known_since: float
) -> tuple[list[Leftover], list[str]]:
    """Folders and config files of runs that the registry does not know.

    Kept are folders with a live holder or with checkpoints, and everything that is older than the registry
    (`known_since`): a registry that was lost or rebuilt may not know a run whose folder is the last of it.
    """
    found, kept, ids = [], [], set(known)
    for folder in _stray_folders(root, known):
        reason = _why_kept(folder, now, known_since)
        if reason is None:
            found.append(
                Leftover(f"folder without a run: {folder}", sum(usage_of(folder).values()), paths=_both(folder))
            )
            continue
        ids.add(folder.name)  # its config and its control folder stay as well
        if reason:
            kept.append(f"folder {folder}: {reason}")
    files = [file for file in _stray_files(root, ids) if _is_old(file, now, known_since)]
    if files:
        what = f"{count(len(files), 'config file')} or control folders without a run"
        found.append(Leftover(what, sum(map(usage_of_path, files)), paths=tuple(files)))
    return found, kept


def _why_kept(folder: Path, now: float, known_since: float) -> str | None:
    """Why a folder of an unknown run is not deleted; empty if that goes without saying, None if it can be deleted."""
    rundir = RunDir(folder)
    # Also where older versions had it: their holders may still be alive.
    if is_locked(rundir.owner_lock) or is_locked(folder / "owner.lock"):
        return "its run is live, but the registry does not know it. Restore it with: mosaic registry rebuild"
    if has_checkpoints(folder):
        return "it has checkpoints"
    if _age(folder, now) < YOUNG_S:
        return ""
    if made_at(folder) <= known_since:
        return "it is older than the registry, which may have lost its run (see --older-than-registry)"
    return None


def _is_old(file: Path, now: float, known_since: float) -> bool:
    age = _age(file, now)
    return age >= YOUNG_S and now - age > known_since


def made_at(folder: Path) -> float:
    """When the run was submitted at the latest: the times of a folder change with its content, an id can be chosen."""
    return min(time_of(folder.name), folder.lstat().st_mtime)


def _stray_folders(root: StateRoot, known: set[str]) -> Iterator[Path]:
    for area in AREAS:
        place = root.area(area)
        names = sorted(os.listdir(place)) if place.is_dir() else []
        yield from (place / name for name in names if is_ulid(name) and name not in known)


def _both(folder: Path) -> tuple[Path, ...]:
    """A run's folder and its control folder, if it has one."""
    control = RunDir(folder).control
    return (folder, control) if os.path.lexists(control) else (folder,)


def _stray_files(root: StateRoot, known: set[str]) -> list[Path]:
    """Config files, and control folders that have neither a run's folder nor a live holder."""
    configs = sorted(root.configs.glob("*-*.json")) if root.configs.is_dir() else []
    controls = sorted(root.control.iterdir()) if root.control.is_dir() else []
    alone = [folder for folder in controls if is_ulid(folder.name) and _is_alone(root, folder)]
    return [file for file in (*configs, *alone) if is_ulid(run_of(file)) and run_of(file) not in known]


def _is_alone(root: StateRoot, control: Path) -> bool:
    has_folder = any(os.path.lexists(root.area(area) / control.name) for area in AREAS)
    return not has_folder and not is_locked(control / "owner.lock")


def run_of(file: Path) -> str:
    return file.stem.rpartition("-")[2]


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
