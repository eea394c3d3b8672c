"""What the launcher's process tells the runtime's, in memory that both see: how far it is, and how it ended.

    bytes 0-7   the step, written at will
    bytes 8-15  the step at which it will be done; 0: not known
    bytes 16-…  one JSON object, written once: {"error", "error_type"} or {"checkpoint", "steps", …}

Memory, not a pipe: nobody waits for a reader, and a child that lives on does not keep anything open.
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
        self._words = memoryview(self._map).cast("q")

    @classmethod
    def create(cls) -> "Link":
        fd = os.memfd_create("cleanrl-link", os.MFD_CLOEXEC)
        os.ftruncate(fd, _REPORT_AT)
        return cls(fd)

    @property
    def step(self) -> int:
        return self._words[0]

    @step.setter
    def step(self, step: int) -> None:
        self._words[0] = step

    @property
    def total(self) -> int:
        return self._words[1]

    @total.setter
    def total(self, total: int) -> None:
        self._words[1] = total

    def report(self, told: Mapping[str, Any]) -> None:
        os.ftruncate(self.fd, _REPORT_AT)
        os.pwrite(self.fd, json.dumps(told, default=str).encode(), _REPORT_AT)

    def read_report(self) -> dict[str, Any]:
        """Empty when nothing was told: the process was killed."""
        data = os.pread(self.fd, os.fstat(self.fd).st_size, _REPORT_AT)
        try:
            told = json.loads(data) if data else {}
        except ValueError:  # killed while writing
            told = {}
        return told if isinstance(told, dict) else {}

    def close(self) -> None:
        self._words.release()
        self._map.close()
        os.close(self.fd)
