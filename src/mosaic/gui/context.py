"""What every page of the window is given. Built once, in app.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from mosaic.model.rundir import StateRoot

if TYPE_CHECKING:
    from mosaic.gui.hub.hub import TelemetryAsyncHub
    from mosaic.gui.memory import Memory
    from mosaic.gui.theme import Theme


class Navigator(Protocol):
    """Opens places of the window. The main window implements it."""

    def open_run(self, run_id: str, section: str = "") -> None:
        """Open a run's tab. `section`: overview, curves, frames, log, settings."""

    def show_runs(self, select: str = "") -> None: ...

    def new_run(
        self, mode: str = "train", worker: str = "", run_id: str = "", settings: Mapping[str, Any] | None = None
    ) -> None:
        """Open the sheet. `mode`: train, script, resume, evaluate. `run_id`: the run to copy, resume or evaluate.

        `settings`: those of a training, by their dotted keys; the others are the worker's defaults.
        """

    def compare(self, run_ids: Sequence[str]) -> None: ...

    def show_operators(self, run_id: str = "") -> None:
        """Open the operators page. `run_id`: an evaluation to show, or a trained run to play."""

    def show_workers(self, name: str = "") -> None: ...


class Notices(Protocol):
    """One line at the edge of the window. It never blocks."""

    def say(self, text: str) -> None: ...

    def problem(self, sentence: str, details: str = "") -> None:
        """An error in words; the details are folded."""


@dataclass(frozen=True)
class Context:
    hub: "TelemetryAsyncHub"
    memory: "Memory"  # remembered layout and settings
    theme: "Theme"
    root: StateRoot | None  # None: the daemon is on another machine
    host: str  # user@box, or empty
    go: Navigator
    notices: Notices
