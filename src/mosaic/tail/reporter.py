"""Tells the daemon what the holder has written on a node that shares no file system with it: start, end, files."""

import json
import os
import time
from typing import Any

from mosaic.model import durable
from mosaic.model.end_proof import LARGEST, of_attempt, own_start, tree_lives
from mosaic.model.rundir import RunDir
from mosaic.tail.files_home import FilesHome
from mosaic.tail.publish import Publisher

DIES_WITHIN_S = 60.0  # the tree of a holder that was killed


class Reporter:
    """Every call may be repeated: the daemon keeps the same facts."""

    def __init__(self, run: RunDir, publisher: Publisher, files: FilesHome) -> None:
        self._run = run
        self._publisher = publisher
        self._files = files
        self._told_end = False

    def report_start(self) -> None:
        started = self._started()
        self._publisher.report(started_json=json.dumps(started) if started else "")
        self._files.start()

    def report_end(self) -> None:
        if not self._told_end:
            exit = durable.read_json(self._run.exit, LARGEST)
            self._publisher.report(exit_json=json.dumps(exit))
            self._told_end = True

    def send_files(self) -> None:
        """Send all files of the run, and say which ones stay here."""
        if left := self._files.finish():
            self._publisher.report(left_behind=left)

    def sees_dead_holder(self) -> bool:
        """Whether the holder was killed. Then its end is written here: the daemon sees nothing of this machine."""
        started = self._started()
        if not started or os.getppid() == started.get("holder_pid"):
            return False
        if not os.path.lexists(self._run.exit):
            deadline = time.monotonic() + DIES_WITHIN_S
            while tree_lives(started) and time.monotonic() < deadline:
                time.sleep(0.1)
            durable.insist_on_json(self._run.exit, self._exit_of_dead_holder(tree_lives(started)))
        return True

    def _started(self) -> "dict[str, Any]":
        launch = self._publisher.launch
        return dict(own_start(of_attempt(durable.read_json(self._run.started, LARGEST), launch["attempt"]), launch))

    def _exit_of_dead_holder(self, lives: bool) -> "dict[str, Any]":
        launch = self._publisher.launch
        return {
            "version": 1,
            "attempt": launch["attempt"],
            "secret": launch["secret"],
            "exit_code": None,
            "signal": None,
            "ended_by": "holder died",
            "unkillable": lives,
            "stdout_bytes": _size(self._run.stdout),
            "stderr_bytes": _size(self._run.stderr),
        }


def _size(path: "os.PathLike[str]") -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:
        return 0
