"""What every reader shares: where a run was found, how much of it was read, and what is known about it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from mosaic.imports.block import Block
from mosaic.imports.files import Changed, Head, head_of
from mosaic.model.run import LONGEST_NAME

MOST_PROBLEMS = 20


@dataclass
class About:
    """What the files say about a run, apart from its curves."""

    settings: dict[str, Any] = field(default_factory=dict)  # under dotted keys
    began: float = 0.0  # unix seconds; 0: unknown
    ended: float = 0.0
    state: str = "TERMINATED"
    reason: str = ""
    tags: list[str] = field(default_factory=list)
    name: str = ""  # if the files contain one
    total_steps: int = 0  # 0: unknown
    artifacts: dict[str, Any] = field(default_factory=dict)  # of analytics.json; absolute paths
    notes: list[str] = field(default_factory=list)  # for the history of the run

    def seen(self, at: float) -> None:
        """The run was active at this time."""
        if 0 < at < 4e9:
            self.began = min(self.began or at, at)
            self.ended = max(self.ended, at)


@dataclass(frozen=True)
class Found:
    """A run that can be imported. `path` is a folder, or a file if only that was named."""

    format: str
    path: Path
    files: tuple[str, ...]  # relative to `path`, in the order of reading
    name: str = ""

    @property
    def folder(self) -> Path:
        return self.path


class Source:
    """Reads one run. Iterate over `blocks`; after each one `cursor()` says how much has been read.

    1. With the cursor of an earlier import only what is new is read.
    2. A file that is damaged, truncated or replaced is named in `problems`, and the others are read.
    """

    format: ClassVar[str] = ""

    def __init__(self, found: Found, cursor: dict[str, Any]) -> None:
        self.found = found
        self.about = About()
        self.problems: list[str] = []
        self._heads: dict[str, Head] = {}
        files = cursor.get("files")
        self._positions: dict[str, Any] = dict(files) if isinstance(files, dict) else {}
        state = cursor.get("state")
        self.state: dict[str, Any] = dict(state) if isinstance(state, dict) else {}
        self.about.began = float(self.state.get("began") or 0.0)
        self.about.ended = float(self.state.get("ended") or 0.0)

    def blocks(self) -> Iterator[Block]:
        """The events that are new. What `about` says is complete at the end."""
        raise NotImplementedError

    def cursor(self) -> dict[str, Any]:
        self.state["began"], self.state["ended"] = self.about.began, self.about.ended
        return {"files": self._positions, "state": self.state}

    # ---- for readers

    def path(self, name: str) -> Path:
        return self.found.path / name

    def position(self, name: str) -> int:
        """How much of a file was read; Changed if it is not the same file any more."""
        known = self._positions.get(name)
        head = self._heads[name] = head_of(self.path(name))
        if not isinstance(known, list) or len(known) != 3:
            return 0
        at, size, digest = known
        # A file has at least as many bytes as rows.
        if head.prefix(size) != digest or self.path(name).stat().st_size < at:
            raise Changed(name)
        return int(at)

    def advance(self, name: str, at: int) -> None:
        """`at` bytes, or rows, of this file are in the blocks so far."""
        head = self._heads[name]
        self._positions[name] = [at, head.size, head.digest]

    def problem(self, text: str) -> None:
        if len(self.problems) < MOST_PROBLEMS and text not in self.problems:
            self.problems.append(text)

    def fail(self, name: str, error: Exception) -> None:
        """Name a file that cannot be read."""
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        self.problem(f"{self.path(name)}: {why}")

    def is_name(self, name: str) -> bool:
        """Whether it can be the name of a metric."""
        if 0 < len(name) <= LONGEST_NAME:
            return True
        self.problem(f"{self.found.path}: a metric whose name has more than {LONGEST_NAME} characters was left out")
        return False
