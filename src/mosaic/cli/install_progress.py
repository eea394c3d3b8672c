"""The progress of an install: one live line on a terminal, one line per phase elsewhere.

It is printed on stderr because stdout is for the result.
"""

import sys
import time
from typing import TYPE_CHECKING

from mosaic.catalog.progress import Progress
from mosaic.cli.safe_output import raw
from mosaic.cli.terminal_text import paint
from mosaic.present.durations import format_duration
from mosaic.present.text import printable

if TYPE_CHECKING:
    from rich.progress import TaskID


class LineProgress(Progress):
    """For log files and pipes."""

    def __enter__(self) -> "LineProgress":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def phase(self, words: str) -> None:
        self.note(f"{words} …")

    def detail(self, words: str) -> None:
        self.note(f"  {words}")

    def note(self, words: str) -> None:
        print(paint(f"  {printable(words)}", "dim", sys.stderr), file=sys.stderr, flush=True)


class LiveProgress(LineProgress):
    """For a terminal: the current phase and its time in one live line. A long phase leaves a line when it ends."""

    LONG_S = 1.0

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bars
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        self._bars = Bars(*columns, console=Console(file=raw(sys.stderr)), transient=True)
        self._task: TaskID | None = None
        self._words = ""
        self._since = time.monotonic()

    def __enter__(self) -> "LiveProgress":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_phase()
        self._bars.stop()

    def phase(self, words: str) -> None:
        self._end_phase()
        self._words, self._since = words, time.monotonic()
        self._task = self._bars.add_task(printable(words), total=None)

    def detail(self, words: str) -> None:
        if self._task is not None:
            self._bars.update(self._task, description=printable(f"{self._words}, {words}"))

    def note(self, words: str) -> None:
        self._bars.console.print(f"  {printable(words)}", style="dim", markup=False, highlight=False)

    def _end_phase(self) -> None:
        if self._task is None:
            return
        self._bars.remove_task(self._task)
        self._task = None
        took_s = time.monotonic() - self._since
        if took_s >= self.LONG_S:
            self.note(f"{self._words}: {format_duration(took_s)}")


def progress() -> LineProgress:
    """The kind of progress that suits stderr."""
    return LiveProgress() if sys.stderr.isatty() else LineProgress()
