"""The screen of an evaluation on a terminal: a person steps its lanes, or plays in them."""

import select
import sys
from typing import TYPE_CHECKING

from mosaic.cli.eval_session import Session
from mosaic.cli.eval_state import CANCEL, FINISH, ScreenState
from mosaic.cli.follow import opened
from mosaic.cli.inbox import Inbox
from mosaic.cli.keyboard import Keyboard
from mosaic.cli.safe_output import raw
from mosaic.cli.watch import DRAW_S, TICK_S, resizing
from mosaic.model.errors import MosaicError

ENDING = {"cmd": "finish"}

if TYPE_CHECKING:
    from rich.console import Console

    from mosaic.client import Run, TrainerClient


def open_screen(client: "TrainerClient", run: "Run", is_manual: bool, name: str = "") -> "tuple[Run, bool]":
    """Show the evaluation until it is over or the user leaves. Returns the run, and whether it was left running."""
    from rich.console import Console

    with Inbox(client) as inbox:
        session = Session(inbox, run)
        state = ScreenState(session.evaluation, is_manual, name)
        _keep_open(state, session, inbox, Console(file=raw(sys.stdout), highlight=False))
        if state.leaves == CANCEL:
            client.cancel_run(run.run_id)
        elif state.leaves == FINISH:
            session.send(ENDING)
        if state.leaves in (FINISH, CANCEL):
            _wait_for_the_end(session, inbox)
        return session.run, not session.is_over


def _keep_open(state: ScreenState, session: Session, inbox: Inbox, console: "Console") -> None:
    from rich.live import Live

    from mosaic.cli.eval_screen import draw

    screen = Live(draw(state, session, console.size), console=console, screen=True, auto_refresh=False)
    with resizing(inbox), Keyboard(False, screen.stop, screen.start) as keyboard, opened(screen) as live:
        while not state.leaves and not session.is_over:
            live.update(draw(state, session, console.size), refresh=True)
            for key in _keys(keyboard, inbox):
                for command in state.press(key):
                    session.send(command)
            _refresh(state, session)


def _refresh(state: ScreenState, session: Session) -> None:
    session.refresh()
    while session.answered:
        state.hear(*session.answered.popleft())


def _keys(keyboard: Keyboard, inbox: Inbox) -> list[str]:
    """The keys that were pressed; none if there is something else to draw."""
    ready = select.select([keyboard.fileno(), inbox.fileno()], [], [], TICK_S)[0]
    # Collect updates for a moment, unless a key is pressed.
    return keyboard.keys(0 if keyboard.fileno() in ready else DRAW_S)


def _wait_for_the_end(session: Session, inbox: Inbox) -> None:
    while not session.is_over:
        inbox.wait(TICK_S)
        session.refresh()
        for command, answer in session.answered:
            if command is ENDING and not answer.ok:
                raise MosaicError(f"finish: {answer.message}")
        session.answered.clear()
