"""How a worker ended, as recorded in exit.json."""

import os
import time
from typing import Any

from mosaic.hold.launch import Launch
from mosaic.hold.spool import SpoolFile
from mosaic.hold.tree import Tree
from mosaic.model import procfs


class Outcome:
    """Collected while the run is live; `record` is what is written at its end."""

    def __init__(self) -> None:
        self.error: str | None = None  # why the worker could not be started
        self.is_unkillable = False
        self.commands_unread: int | None = None  # None: it takes no commands
        self._worker: dict[str, Any] = {}
        self._oom_kills_before = procfs.oom_kills()

    def note(self, report: "dict[str, Any]") -> None:
        """Store what the root process reported about the worker."""
        self._worker = report
        self.error = report.get("spawn_error", self.error)

    def record(
        self, launch: Launch, tree: "Tree | None", files: "list[SpoolFile]", cause: "str | None"
    ) -> dict[str, Any]:
        code, number = self._end_of_worker(tree)
        stdout_bytes, stderr_bytes = [file.size for file in files] or [0, 0]
        return {
            "version": 1,
            "attempt": launch.attempt,
            "secret": launch.secret,
            "ended_at": time.time(),
            "exit_code": code,
            "signal": number and procfs.signal_name(number),
            "ended_by": "spawn error" if self.error else cause,
            "error": self.error,
            "oom_kills": procfs.oom_kills() - self._oom_kills_before,
            "unkillable": self.is_unkillable,
            "proof": self._proof(launch, tree),
            "commands_unread": self.commands_unread,
            "stdout_bytes": stdout_bytes,
            "stderr_bytes": stderr_bytes,
            "max_rss_kb": self._worker.get("max_rss_kb", tree.max_rss_kb if tree else 0),
            "cpu_s": round(tree.cpu_s if tree else 0.0, 3),
        }

    def _end_of_worker(self, tree: "Tree | None") -> "tuple[int | None, int | None]":
        """Its exit code or the signal that ended it; neither when it never ran or its end was not observed."""
        status = self._worker.get("status")
        if status is None and tree is not None and tree.root_status is not None:
            # The root process was killed before it could report, and the kernel killed the worker with it.
            status = tree.root_status if os.WIFSIGNALED(tree.root_status) else None
        if status is None:
            return None, None
        code = os.waitstatus_to_exitcode(status)
        return (code, None) if code >= 0 else (None, -code)

    def _proof(self, launch: Launch, tree: "Tree | None") -> str:
        if self.is_unkillable:
            return f"none: processes were left {launch.unkillable_s:g} s after SIGKILL"
        return tree.means.proof if tree else "no process was started"
