"""The progress of an install: its phases, read from the output of uv."""

import re
from collections.abc import Callable
from typing import ClassVar

_MEGABYTES = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}


class Progress:
    """Receives the progress of an install. This one ignores it; cli/install_progress.py has those that show it."""

    def phase(self, words: str) -> None:
        """The next phase has begun."""

    def detail(self, words: str) -> None:
        """The progress within this phase."""

    def note(self, words: str) -> None:
        """A message that stays on the screen."""


class Narrator:
    """Turns the lines of `uv pip install` into phases. Unknown lines are skipped."""

    def __init__(self, progress: Progress, subject: str) -> None:
        self._progress = progress
        self._subject = subject  # which packages: "of requirements/default.txt"
        self._sizes: dict[str, float] = {}  # large downloads that have begun, in MiB
        self._done: set[str] = set()

    def read(self, line: str) -> None:
        for pattern, report in self._REPORTS.items():
            if match := re.match(pattern, line):
                report(self, *match.groups())
                return

    def _resolved(self, count: str) -> None:
        self._progress.phase(f"Collecting {_packages(count)} {self._subject}")

    def _downloading(self, name: str, size: str, unit: str) -> None:
        self._sizes[name] = float(size) * _MEGABYTES.get(unit, 0.0)
        self._report_downloads(f"downloading {name} ({float(size):.0f} {unit})")

    def _downloaded(self, name: str) -> None:
        self._done.add(name)
        waiting = [name for name in self._sizes if name not in self._done]
        self._report_downloads(f"downloading {', '.join(waiting)}" if waiting else "downloaded")

    def _report_downloads(self, words: str) -> None:
        here = sum(size for name, size in self._sizes.items() if name in self._done)
        self._progress.detail(f"{words}: {here:.0f} of {sum(self._sizes.values()):.0f} MiB done")

    def _building(self, name: str) -> None:
        self._progress.detail(f"building {name}")

    def _prepared(self, count: str) -> None:
        self._progress.phase(f"Installing {_packages(count)}")

    def _installed(self, count: str) -> None:
        self._progress.phase(f"Compiling {_packages(count)} to bytecode")

    _REPORTS: ClassVar[dict[str, Callable[..., None]]] = {
        r"Resolved (\d+) packages? in": _resolved,
        r"\s*Downloading (\S+) \(([\d.]+)([KMG]iB)\)": _downloading,
        r"\s*Downloaded (\S+)": _downloaded,
        r"\s*Building (\S+)": _building,
        r"Prepared (\d+) packages? in": _prepared,
        r"Installed (\d+) packages? in": _installed,
    }


def _packages(count: str) -> str:
    return f"{count} package{'' if count == '1' else 's'}"
