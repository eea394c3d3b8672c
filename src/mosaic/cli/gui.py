"""`mosaic gui`: the window. Only this verb imports mosaic.gui, and only when it is called."""

import argparse
from typing import TYPE_CHECKING

from mosaic.cli.connection import host_of
from mosaic.cli.verb import add_verb

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs

EXAMPLES = """
mosaic gui                          open the window; the daemon is started if none runs
mosaic gui --theme dark             with dark colours; the choice is remembered
mosaic --host me@box gui            the runs of another machine, through ssh
mosaic gui --reset                  forget the layout and the settings of the window
"""
DETAILS = """\
Closing the window stops neither runs nor the daemon. It needs the extra [gui]: pip install 'mosaic-rl[gui]'.
Its log is logs/gym_gui.log in the state folder."""


def add_verbs(verbs: "Verbs") -> None:
    parser = add_verb(
        verbs, "gui", open_window, "open the window: runs, live curves, frames, new runs", EXAMPLES, DETAILS
    )
    parser.add_argument("--theme", choices=("system", "light", "dark"), help="the colours (default: as last time)")
    parser.add_argument("--reset", action="store_true", help="forget the remembered layout and settings, then open")
    parser.add_argument(
        "--debug", action="store_true", help="log what keeps the window from responding for more than 100 ms"
    )


def open_window(args: argparse.Namespace) -> int:
    from mosaic.gui import preflight

    preflight.check()
    from mosaic.gui.app import Options, run

    return run(Options(host_of(args), args.theme or "", args.reset, args.debug))
