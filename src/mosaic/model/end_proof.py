"""When exit.json is believed: it has the secret of its attempt, and the root process of its tree is gone.

The secret is in launch.json and started.json, which a namespace hides from the worker. Where nothing hides them, a
worker can write a perfect exit.json, and its live process contradicts it.
"""

import hmac
import os
from collections.abc import Mapping
from typing import Any

from mosaic.model import procfs
from mosaic.model.durable import read_json
from mosaic.model.rundir import RunDir

LARGEST = 1 << 20  # bytes of exit.json, started.json and launch.json: parsing more would delay other runs
Facts = Mapping[str, Any]


def of_attempt(path_facts: "Facts | None", attempt: int) -> Facts:
    """The content of one of a run's files if it is about this attempt, else nothing."""
    return path_facts if path_facts and path_facts.get("attempt") == attempt else {}


def own_launch(rundir: RunDir) -> Facts:
    """launch.json, or nothing if it is missing or another run's: that says nothing about this run."""
    launch = read_json(rundir.launch, LARGEST) or {}
    return launch if launch.get("run_id") == rundir.run_id else {}


def secret_of(launch: Facts, started: Facts) -> str:
    """The secret of an attempt; empty for a run that an older version started. Either file may be damaged."""
    secrets = (facts.get("secret") for facts in (launch, started))
    return next((secret for secret in secrets if secret and isinstance(secret, str)), "")


def own_start(started: Facts, launch: Facts) -> Facts:
    """started.json if it is of this launch. Of another one only the attempt counts: a worker may have been started."""
    secret = launch.get("secret")
    if not started or not secret or started.get("secret") == secret:
        return started
    return {"attempt": started.get("attempt")}


def is_attested(exit: Facts, secret: str) -> bool:
    """Whether the holder wrote it, or the daemon for a dead holder."""
    written = exit.get("secret")
    if not secret:
        return True
    return isinstance(written, str) and hmac.compare_digest(_bytes(written), _bytes(secret))


def tree_lives(started: Facts) -> bool:
    """Whether the root process of the tree is alive. While it is, no process of the tree is proven dead."""
    pid, ticks = started.get("root_pid"), started.get("root_start_ticks")
    if not isinstance(pid, int) or not isinstance(ticks, int):
        return False
    return procfs.is_same(pid, ticks) and started.get("boot_id") == procfs.boot_id()


def lives_here(started: Facts, rundir: RunDir) -> bool:
    """Whether the tree is alive and this run's own, not that of the root from which this one was copied."""
    return tree_lives(started) and not is_elsewhere(started, rundir)


def is_elsewhere(started: Facts, rundir: RunDir) -> bool:
    """Whether the process in started.json belongs to another root. Its command line, the holder's, says where."""
    folder = run_folder_of(started["root_pid"]) if tree_lives(started) else ""
    return is_of_another_root(folder, rundir)


def run_folder_of(pid: int) -> str:
    """The run folder in the command line of a holder, or of the root of its tree; empty for any other process."""
    words = procfs.command_line(pid)
    return os.fsdecode(words[words.index(b"--run-dir") + 1]) if b"--run-dir" in words[:-1] else ""


def is_of_another_root(folder: str, rundir: RunDir) -> bool:
    """Whether `folder` exists and is not this run's: then the root was copied, and the run id names two runs.

    A folder that does not exist is this run's, under the path that it had before its root was moved.
    """
    try:
        return bool(folder) and folder != str(rundir.path) and not os.path.samefile(folder, rundir.path)
    except OSError:
        return os.path.exists(folder)


def has_ended(rundir: RunDir, launch: Facts) -> bool:
    """Whether the worker of this launch is proven dead, for a process that knows the run only from its files."""
    try:
        exit = of_attempt(read_json(rundir.exit), launch["attempt"])
        started = own_start(of_attempt(read_json(rundir.started), launch["attempt"]), launch) if exit else {}
    except OSError:
        return False  # it cannot be read, so it proves nothing
    if not exit or not is_attested(exit, secret_of(launch, started)):
        return False
    return bool(exit.get("unkillable")) or not lives_here(started, rundir)


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")
