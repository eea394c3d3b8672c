"""How a run's state is shown: one of five kinds, each with a glyph, a word and a colour of the screen's palette."""

from typing import TYPE_CHECKING

from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.client import Run

# The kinds, which are also the names of the palette's colours. A state is never told by its colour alone.
GLYPH = {"running": "▶", "done": "✓", "failed": "✕", "waiting": "◌", "cancelled": "⊘"}
KIND = {
    RunState.INIT: "waiting",
    RunState.HANDSHAKE: "running",
    RunState.READY: "running",
    RunState.EXECUTING: "running",
    RunState.TERMINATED: "done",
    RunState.FAULTED: "failed",
    RunState.CANCELLED: "cancelled",
}
WORD = KIND | {RunState.HANDSHAKE: "starting", RunState.READY: "started"}


def state_word(run: "Run") -> str:
    """`running`, `waiting`, `cancelling` …"""
    return "cancelling" if run.cancel_requested and not run.state.is_over else WORD[run.state]


def state_text(run: "Run") -> str:
    """The glyph and the word: `▶ running`."""
    return f"{GLYPH[KIND[run.state]]} {state_word(run)}"
