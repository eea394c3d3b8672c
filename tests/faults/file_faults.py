"""Faults of a schedule that change files which the platform trusts because it once wrote them.

Each act gets the trial and the number of a run; it returns False if it came too late. The adversary does the same to
every file, one at a time; here it happens together with kills, stops and full disks.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from damage import inflict
from live_copy import copy_live

from mosaic.client import TrainerClient
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from trial import Trial

ADOPTED_WITHIN_S = 3.0  # a daemon finds the runs of its root
ROWS_WITHIN_S = 10.0


def plant_special_files(trial: "Trial", number: int) -> bool:
    """FIFOs and a link without an end at names that the platform reads; the run itself does not need them."""
    rundir = trial.rundir(number)
    if trial.has_ended(number):
        return False
    if not rundir.started.exists():  # a run is not started in a folder with a link
        trial.witnesses[number].may_end.add((RunState.FAULTED, f"spawn error: {rundir.analytics} is a symbolic link"))
    kinds = {rundir.analytics: "link to /dev/zero", rundir.provenance: "FIFO", rundir.exit: "FIFO"}
    proofs = [inflict(kind, path, rundir.path) for path, kind in kinds.items()]
    return not any(proof["refused"] for proof in proofs)


def delete_telemetry(trial: "Trial", number: int) -> bool:
    """Every line still lies in the spool."""
    rundir = trial.rundir(number)
    _wait_for_rows(trial, number)
    if trial.has_ended(number) or not rundir.telemetry.exists():
        return False
    trial.witnesses[number].telemetry_was_deleted = True
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{rundir.telemetry}{suffix}")
    return True


def spoil_telemetry(trial: "Trial", number: int) -> bool:
    """Values of a wrong type: SQLite finds nothing wrong with them. Without a daemon, which locks the file."""
    rundir = trial.rundir(number)
    _wait_for_rows(trial, number)
    if pid := trial._daemon_pid():
        trial._kill_this_daemon(pid)
    # A run that ended before its worker started has no telemetry: `inflict` would leave an empty file there.
    is_spoiled = rundir.telemetry.exists() and not inflict("wrong type", rundir.telemetry, rundir.path)["refused"]
    trial._connect()
    if is_spoiled:
        trial.witnesses[number].telemetry_was_spoiled = True
    return is_spoiled


def empty_registry(trial: "Trial", number: int) -> bool:
    """The registry has no bytes when the next daemon starts."""
    if pid := trial._daemon_pid():
        trial._kill_this_daemon(pid)
    for suffix in ("-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{trial.root.registry}{suffix}")
    os.truncate(trial.root.registry, 0)
    trial._connect()
    return True


def copy_root(trial: "Trial", number: int) -> bool:
    """A daemon of the copy must be refused, or leave the original's runs alone."""
    # Its name begins with the original's, so that its processes count as the trial's.
    copy = StateRoot(trial.home / "h-copy")
    try:
        copy_live(trial.root.path, copy.path, leave_out=("ballast",))
        for lock in (copy.address, copy.pid):
            lock.unlink(missing_ok=True)
        with TrainerClient.connect(copy) as client:
            _wait(lambda: all(run.state.is_over for run in client.list_runs().runs), ADOPTED_WITHIN_S)
            client.shutdown()
    except MosaicError:
        return True  # refused
    finally:
        # On a small disk it takes the space that the original's runs wait for.
        shutil.rmtree(copy.path, ignore_errors=True)
    return True


def _wait_for_rows(trial: "Trial", number: int) -> None:
    def has_rows() -> bool:
        now = trial.look(number)
        return now.summary.events > 0 or now.state.is_over

    _wait(has_rows, ROWS_WITHIN_S)


def _wait(done: Callable[[], bool], limit_s: float) -> None:
    """Until it is so, or for the time in which it would have become so."""
    deadline = time.monotonic() + limit_s
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)


FILE_FAULTS: dict[str, Callable[["Trial", int], bool]] = {
    "special files": plant_special_files,
    "telemetry deleted": delete_telemetry,
    "telemetry spoiled": spoil_telemetry,
    "empty registry": empty_registry,
    "copied root": copy_root,
}
