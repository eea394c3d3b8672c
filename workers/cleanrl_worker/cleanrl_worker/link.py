"""How far a training is and how it ended: reported by the launcher's process to the runtime's, in shared memory.

    bytes 0-7   the current step, written at any time
    bytes 8-15  the step at which the training ends; 0: unknown
    bytes 16-…  one JSON object, written once: {"error", "error_type"} or {"checkpoint", "steps", …}

Memory instead of a pipe: a write never waits for a reader, and a surviving child process does not keep it open.
"""

import json
import mmap
import os
from collections.abc import Mapping
from typing import Any

_REPORT_AT = 16


class Link:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _REPORT_AT)
        self._counters = memoryview(self._map).cast("q")

    @classmethod
    def create(cls) -> "Link":
        fd = os.memfd_create("cleanrl-link", os.MFD_CLOEXEC)
        os.ftruncate(fd, _REPORT_AT)
        return cls(fd)

    @property
    def step(self) -> int:
        return self._counters[0]

    @step.setter
    def step(self, step: int) -> None:
        self._counters[0] = step

    @property
    def total(self) -> int:
        return self._counters[1]

    @total.setter
    def total(self, total: int) -> None:
        self._counters[1] = total

    def report(self, outcome: Mapping[str, Any]) -> None:
        os.ftruncate(self.fd, _REPORT_AT)
        os.pwrite(self.fd, json.dumps(outcome, default=str).encode(), _REPORT_AT)

    def read_report(self) -> dict[str, Any]:
        """Empty if the process was killed before it could report."""
        data = os.pread(self.fd, os.fstat(self.fd).st_size, _REPORT_AT)
        try:
            outcome = json.loads(data) if data else {}
        except ValueError:  # killed while writing
            outcome = {}
        return outcome if isinstance(outcome, dict) else {}

    def close(self) -> None:
        self._counters.release()
        self._map.close()
        os.close(self.fd)
