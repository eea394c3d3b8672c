"""How far an install is: phases, told to whoever listens, and read from what uv prints."""

import re
from collections.abc import Callable
from typing import ClassVar

_MEGABYTES = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0}


class Progress:
    """Hears how an install goes. This one keeps it to itself; cli/install_progress.py has those that tell people."""

    def phase(self, words: str) -> None:
        """The next part of the work has begun."""

    def detail(self, words: str) -> None:
        """How far this part is."""

    def note(self, words: str) -> None:
        """Something that must stay to be read."""


class Narrator:
    """Turns the lines of `uv pip install` into phases. What it does not know it passes over."""

    def __init__(self, progress: Progress, subject: str) -> None:
        self._progress = progress
        self._subject = subject  # which packages: "of requirements/default.txt"
        self._sizes: dict[str, float] = {}  # large downloads that began, in MiB
        self._done: set[str] = set()

    def hear(self, line: str) -> None:
        for pattern, tell in self._TELLS.items():
            if match := re.match(pattern, line):
                tell(self, *match.groups())
                return

    def _resolved(self, count: str) -> None:
        self._progress.phase(f"Collecting {_packages(count)} {self._subject}")

    def _downloading(self, name: str, size: str, unit: str) -> None:
        self._sizes[name] = float(size) * _MEGABYTES.get(unit, 0.0)
        self._tell_downloads(f"downloading {name} ({float(size):.0f} {unit})")

    def _downloaded(self, name: str) -> None:
        self._done.add(name)
        waiting = [name for name in self._sizes if name not in self._done]
        self._tell_downloads(f"downloading {', '.join(waiting)}" if waiting else "downloaded")

    def _tell_downloads(self, words: str) -> None:
        here = sum(size for name, size in self._sizes.items() if name in self._done)
        self._progress.detail(f"{words}: {here:.0f} of {sum(self._sizes.values()):.0f} MiB are here")

    def _building(self, name: str) -> None:
        self._progress.detail(f"building {name}")

    def _prepared(self, count: str) -> None:
        self._progress.phase(f"Installing {_packages(count)}")

    def _installed(self, count: str) -> None:
        self._progress.phase(f"Compiling {_packages(count)} to bytecode")

    _TELLS: ClassVar[dict[str, Callable[..., None]]] = {
        r"Resolved (\d+) packages? in": _resolved,
        r"\s*Downloading (\S+) \(([\d.]+)([KMG]iB)\)": _downloading,
        r"\s*Downloaded (\S+)": _downloaded,
        r"\s*Building (\S+)": _building,
        r"Prepared (\d+) packages? in": _prepared,
        r"Installed (\d+) packages? in": _installed,
    }


def _packages(count: str) -> str:
    return f"{count} package{'' if count == '1' else 's'}"
