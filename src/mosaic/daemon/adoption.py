"""Adopts a state root that was copied, moved or restored, so that a daemon may serve it where it lies now.

    python -m mosaic.daemon.adoption --root ROOT [--as moved|copy]

moved   The folder is the one that was made (same inode), and its old path is free. Everything continues, also runs
        whose holders hold their locks here. If there are such runs, a symbolic link at the old path leads here: their
        processes know only that path.
copy    The original may exist, with its daemon and processes. Every live run of the copy becomes FAULTED, nothing is
        signalled, and nothing outside this root is read, written or deleted. The copy gets a token of its own.

Prints a JSON object. The new place is recorded last: after a crash the root is still refused, and can be adopted again.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from mosaic.daemon.lock import DaemonLock
from mosaic.daemon.settings import Settings
from mosaic.dispatch.local_launcher import LocalLauncher
from mosaic.model.errors import AlreadyRunning, BadRoot, MosaicError
from mosaic.model.place import Shift, record_place, recorded_place, shift_of
from mosaic.model.root import has_other_mark, machine_mark, mark_machine, prepare_root
from mosaic.model.run import RunRecord
from mosaic.model.rundir import AREAS, StateRoot
from mosaic.model.states import RunState
from mosaic.registry.registry import Registry

MOVED, COPY = "moved", "copy"
COPIED_WHILE_RUNNING = "copied while running"
COPIED_WHILE_WAITING = "copied before it started"
NOTED = "its telemetry ends with the copy"
LOCK_WITHIN_S = 10.0  # the daemon of a root that was moved under it ends by itself


def adopt(root: StateRoot, wanted: str = "") -> dict[str, Any]:
    """Adopt the root as `wanted`, or as what it is. Returns what was done; `as` is empty if there was nothing to do."""
    if not root.path.is_dir():
        raise BadRoot(f"There is no state folder {root.path}. Set MOSAIC_HOME to the one to adopt.")
    prepare_root(root)
    shift, is_foreign = shift_of(root), has_other_mark(root)
    before = recorded_place(root)
    done: dict[str, Any] = {"root": str(root.path), "from": before.path if before else "", "as": "", "faulted": []}
    done |= {"continue": [], "link": "", "warning": ""}
    if not shift and not is_foreign:
        return done
    how = wanted or (MOVED if shift is Shift.MOVED and not is_foreign else COPY)
    if how == MOVED and (shift is not Shift.MOVED or is_foreign):
        raise BadRoot(_why_not_moved(root, done["from"], is_foreign))
    lock = _lock(root)
    _forget_daemon(root)
    done |= _adopt_copy(root) if how == COPY else _adopt_moved(root, done["from"])
    mark_machine(root, machine_mark())
    record_place(root)
    del lock
    return done | {"as": how}


def _adopt_copy(root: StateRoot) -> dict[str, Any]:
    _refuse_shared(root)
    live = _live(root)
    held = _held(root, live)
    if held:
        raise BadRoot(
            f"Run {held[0]} is alive in {root.path}, so this folder is not a copy. To keep its runs, use: "
            "mosaic root adopt --moved"
        )
    root.token.unlink(missing_ok=True)
    # Not the original's TCP address either; one that `daemon start --tcp` chose is the original's.
    replace(Settings.load(root), tcp="", tcp_is_automatic=False).save(root)
    if live:
        registry = Registry.open(root.registry)
        for record in live:
            registry.free_gpus(record.run_id)
            reason = COPIED_WHILE_WAITING if record.state is RunState.INIT else COPIED_WHILE_RUNNING
            registry.note(record.run_id, telemetry=NOTED)
            registry.move(record.run_id, RunState.FAULTED, reason)
        registry.close()
    return {"faulted": [record.run_id for record in live]}


def _adopt_moved(root: StateRoot, before: str) -> dict[str, Any]:
    held = _held(root, _live(root))
    if not held:
        return {}
    try:
        os.symlink(os.path.realpath(root.path), before)
    except OSError as error:
        why = f"{before} cannot become a link to it ({error.strerror}), so its live runs will end as 'holder died'."
        return {"continue": held, "warning": why}
    return {"continue": held, "link": before}


def _live(root: StateRoot) -> list[RunRecord]:
    if not root.registry.exists():
        return []
    registry = Registry.open(root.registry)
    live = registry.live()
    registry.close()
    return live


def _held(root: StateRoot, live: list[RunRecord]) -> list[str]:
    """The runs whose holders hold their locks in this very folder."""
    launcher = LocalLauncher()
    dirs = [root.run(record.area, record.run_id) for record in live]
    return [rundir.run_id for rundir in dirs if rundir.owner_lock.exists() and launcher.is_held(rundir)]


def _lock(root: StateRoot) -> DaemonLock:
    deadline = time.monotonic() + LOCK_WITHIN_S
    while True:
        try:
            return DaemonLock.take(root)
        except AlreadyRunning:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _forget_daemon(root: StateRoot) -> None:
    """What the last daemon left leads to that daemon, which may be the original's."""
    for path in (root.address, root.pid, root.socket):
        if path.is_dir() and not path.is_symlink():
            raise BadRoot(f"{path} is a folder. Remove it.")
        path.unlink(missing_ok=True)


def _refuse_shared(root: StateRoot) -> None:
    """A copy that was made of links shares files with the original; whatever is done to them happens there, too."""
    home = os.path.realpath(root.path)
    for path in (root.trainer, root.telemetry, root.registry, root.lock, *(root.area(name) for name in AREAS)):
        if not os.path.realpath(path).startswith(f"{home}/"):
            raise BadRoot(f"{path} is a link out of {root.path}, so it may be the original's. Copy what it leads to.")
    if root.registry.exists() and root.registry.stat().st_nlink > 1:
        raise BadRoot(
            f"{root.registry} is a hard link, so it may be the original's own file. Copy the folder again with: cp -a"
        )


def _why_not_moved(root: StateRoot, before: str, is_foreign: bool) -> str:
    if is_foreign:
        return f"{root.path} was made on another machine. To use it here, run: mosaic root adopt --copy"
    return (
        f"{root.path} was not moved from {before}: it is another folder than the one that was made there, or that one "
        "still exists. To use it, run: mosaic root adopt --copy"
    )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="mosaic.daemon.adoption")
    parser.add_argument("--root", required=True)
    parser.add_argument("--as", dest="wanted", choices=(MOVED, COPY), default="")
    args = parser.parse_args(argv)
    os.umask(0o077)
    try:
        print(json.dumps(adopt(StateRoot(Path(args.root).absolute()), args.wanted)))
    except (MosaicError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
