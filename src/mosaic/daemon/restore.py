"""Restores a registry that is missing, damaged or older than its runs: at the start of a daemon, and on request.

    python -m mosaic.daemon.restore --root ROOT [--json]

Exit codes: 0 rebuilt, 1 it could not be rebuilt, 3 a daemon serves this root.
"""

import argparse
import json
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mosaic.daemon.lock import DaemonLock
from mosaic.dispatch import run_output
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.dispatch.reasons import final_state
from mosaic.model import durable
from mosaic.model.errors import AlreadyRunning, BadRoot, MosaicError
from mosaic.model.root import check_root
from mosaic.model.run import RunConfig, RunRecord, WorkerSpec
from mosaic.model.rundir import AREAS, RunDir, StateRoot
from mosaic.model.states import RunState
from mosaic.model.ulid import is_ulid
from mosaic.registry.condition import problem_of
from mosaic.registry.rebuild import Rebuilt, adopt, end, rebuild
from mosaic.registry.records import Records
from mosaic.registry.registry import Registry
from mosaic.submit.imported import is_imported, read_imported
from mosaic.submit.record import load

log = logging.getLogger(__name__)
ASKED = "it was requested"
NEVER_STARTED = (
    "restored without its history: it had not started when the registry was lost. Submit it again if it is needed"
)
MOST_PROBLEMS = 50  # that are kept in registry.json


def restore_if_needed(root: StateRoot) -> Rebuilt | None:
    """Rebuild the registry if it cannot be trusted, and say so in the log. Only with the daemon's lock held."""
    try:
        why = problem_of(root.registry, _has_traces(root))
    except (sqlite3.Error, OSError) as error:
        raise BadRoot(f"{root.registry} cannot be read ({error}). Free some disk space and try again.") from error
    done = restore(root, why) if why else None
    if durable.read_json(root.registry_origin) is None:
        _write_origin(root, {"version": 1, "created_at": _oldest(root.registry)})
    return done


def restore(root: StateRoot, why: str) -> Rebuilt:
    """Rebuild the registry. Only with the daemon's lock held."""
    log.warning("The registry is being rebuilt: %s.", why)
    try:
        done = rebuild(root.registry, root.backups, why, lambda registry, done: _fill(root, registry, done))
    except (sqlite3.Error, OSError) as error:
        raise BadRoot(
            f"{root.registry} must be rebuilt ({why}), which failed: {error}. Free some disk space, or see the log "
            f"{root.daemon_log}, and try again with: mosaic registry rebuild"
        ) from error
    log.warning("%s", describe(done))
    for problem in done.problems:
        log.warning("%s", problem)
    report = {**asdict(done), "problems": done.problems[:MOST_PROBLEMS]}
    _write_origin(root, {"version": 1, "created_at": done.at, "rebuilt_at": done.at, "seen": False, **report})
    return done


def describe(done: Rebuilt) -> str:
    kept = f" The old file is kept as {done.damaged_file}." if done.damaged_file else ""
    source = f"{done.started_from} and the records of the runs" if done.started_from else "the records of the runs"
    found = f", {done.from_folders} of them from their folders alone" if done.from_folders else ""
    return f"The registry was rebuilt because {done.why}: {done.runs} runs, from {source}{found}.{kept}"


# ---- runs without a usable record


def _fill(root: StateRoot, registry: Registry, done: Rebuilt) -> None:
    """Add the runs that only their files show, and correct rows that are older than a live holder."""
    launcher = LocalLauncher()
    deleted = Records(root.control).deleted()
    for run_id, rundir in _folders(root):
        if run_id in deleted:
            continue
        try:
            if not registry.has(run_id):
                done.from_folders += _add(root, registry, rundir, launcher)
            else:
                _catch_up(registry, registry.get(run_id), rundir)
        except (MosaicError, OSError, ValueError, TypeError, KeyError) as error:
            done.problems.append(f"Run {run_id} could not be restored: {error}")


def _add(root: StateRoot, registry: Registry, rundir: RunDir, launcher: LocalLauncher) -> bool:
    document = durable.read_json(root.config_file(rundir.run_id)) or {}
    if is_imported(document):
        imported, ending = read_imported(document)
        registry.add_imported(imported, ending, f"imported from {imported.origin}; restored from its files")
        return True
    is_held = rundir.owner_lock.is_file() and launcher.is_held(rundir)
    config = _config(root, rundir, is_held)
    if config is None:
        return False  # a folder that no submit completed, or that is not a run's
    registry.add(config, "restored from its files")
    launch, exit = durable.read_json(rundir.launch) or {}, durable.read_json(rundir.exit) or {}
    attempt = _attempt(launch)
    record = registry.get(rundir.run_id)
    if exit and not is_held:
        end(registry, rundir.run_id, *final_state(record, exit, "", run_output.stderr_tail(rundir)))
    elif is_held or attempt:
        adopt(registry, rundir.run_id, max(attempt, 1), _gpus(launch))
    else:
        # Perhaps it was cancelled, or its submit was never answered: nothing is started without a record.
        registry.move(rundir.run_id, RunState.FAULTED, NEVER_STARTED)
    return True


def _catch_up(registry: Registry, record: RunRecord, rundir: RunDir) -> None:
    """A row from a backup may be older than its holder: the run must not be started a second time."""
    launch = durable.read_json(rundir.launch) or {}
    if record.state is RunState.INIT and _attempt(launch) > record.attempt:
        adopt(registry, record.run_id, _attempt(launch), _gpus(launch))
    while record.state is RunState.HANDSHAKE and registry.get(record.run_id).attempt < _attempt(launch):
        registry.raise_attempt(record.run_id)


def _config(root: StateRoot, rundir: RunDir, is_held: bool) -> RunConfig | None:
    try:
        return load(root, rundir.run_id)
    except MosaicError:
        # A live run can be cancelled even if its config is lost.
        area, worker = rundir.path.parent.name, WorkerSpec(module="unknown")
        return RunConfig(rundir.run_id, rundir.run_id, area, "unknown", worker) if is_held else None


def _attempt(launch: dict[str, Any]) -> int:
    found = launch.get("attempt")
    return found if isinstance(found, int) and 0 < found < 1000 else 0


def _gpus(launch: dict[str, Any]) -> list[str]:
    env = launch.get("env")
    shown = env.get("CUDA_VISIBLE_DEVICES", "") if isinstance(env, dict) else ""
    return [uuid for uuid in str(shown).split(",") if uuid.startswith("GPU-")]


def _folders(root: StateRoot) -> Iterator[tuple[str, RunDir]]:
    """Every folder of a run, in the order of their ids, which is the order of submission."""
    found = {name: area for area in AREAS for name in _names(root.area(area)) if is_ulid(name)}
    for run_id in sorted(found):
        rundir = root.run(found[run_id], run_id)
        if rundir.path.is_dir() and not rundir.path.is_symlink():
            yield run_id, rundir


def _has_traces(root: StateRoot) -> bool:
    folders = (root.control, root.configs, *(root.area(area) for area in AREAS))
    return any(is_ulid(name) or name.startswith("config-") for folder in folders for name in _names(folder))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


# ---- registry.json


def _oldest(path: Path) -> float:
    """Since when this registry knows the runs: `mosaic gc` keeps older folders."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            found = db.execute("SELECT min(created_at) FROM runs").fetchone()[0]
    except sqlite3.Error:
        found = None  # there is no registry yet
    return float(found) if isinstance(found, float) else time.time()


def _write_origin(root: StateRoot, value: dict[str, Any]) -> None:
    try:
        root.control.mkdir(mode=0o700, exist_ok=True)
        durable.write_json(root.registry_origin, value)
    except OSError as error:
        log.warning("%s cannot be written, so `mosaic gc` deletes no folders: %s", root.registry_origin, error)


# ---- on request


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mosaic-restore", description="Rebuild the registry of a state root.")
    parser.add_argument("--root", required=True)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    os.umask(0o077)
    root = StateRoot(Path(args.root).absolute())
    try:
        check_root(root)
        lock = DaemonLock.take(root)
        done = restore(root, problem_of(root.registry, _has_traces(root)) or ASKED)
    except AlreadyRunning as error:
        print(f"{error}\nStop it first; runs continue meanwhile: mosaic daemon stop", file=sys.stderr)
        return 3
    except (MosaicError, OSError, sqlite3.Error) as error:
        print(error, file=sys.stderr)
        return 1
    root.pid.unlink(missing_ok=True)
    del lock
    print(json.dumps(asdict(done), indent=1) if args.json else "\n".join([describe(done), *done.problems]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
