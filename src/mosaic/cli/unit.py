"""`mosaic daemon install|uninstall`: a systemd user unit that keeps the daemon running."""

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.cli.connection import refuse_host
from mosaic.cli.verb import add_verb
from mosaic.model.errors import MosaicError
from mosaic.model.rundir import StateRoot
from mosaic.model.xdg import xdg_folder

if TYPE_CHECKING:
    from mosaic.cli.verb import Verbs

NAME = "mosaic.service"
MARK = "# Written by `mosaic daemon install`. `mosaic daemon uninstall` removes it."
TEMPLATE = """\
{mark}
[Unit]
Description=MOSAIC daemon
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=exec
Environment={environment}
# python -m imports from the working directory first, and only root can write to /.
WorkingDirectory=/
# A daemon that a command started hands over; its runs continue.
ExecStartPre={python} -m mosaic daemon stop
ExecStart={python} -m mosaic.daemon.server --root {root} --from-settings
# Not a mere SIGTERM: after that the tailer of a live run would start a daemon again.
ExecStop={python} -m mosaic daemon stop
Restart=on-failure
RestartSec=2
# Holders, tailers and workers are in this unit's control group. They survive a stop, and the next daemon finds them.
KillMode=process
# A worker that runs out of memory ends its own run, not the daemon.
OOMPolicy=continue
TasksMax=infinity

[Install]
WantedBy=default.target
"""
NEXT = """\
Start it now and at every login:       systemctl --user daemon-reload && systemctl --user enable --now mosaic
Keep it and its runs after you log out: loginctl enable-linger"""


def add_actions(actions: "Verbs") -> None:
    example = "mosaic daemon install\nmosaic daemon install --print"
    parser = add_verb(actions, "install", install, "let systemd keep the daemon running", example)
    parser.add_argument("--print", dest="print_only", action="store_true", help="print the unit, write nothing")
    add_verb(actions, "uninstall", uninstall, "remove the systemd unit", "mosaic daemon uninstall")


def install(args: argparse.Namespace) -> int:
    refuse_host(args, "daemon install")
    text = unit_text(sys.executable, StateRoot.from_environment().path.absolute())
    if args.print_only:
        print(text, end="")
        return 0
    path = unit_path()
    _refuse_foreign_file(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise MosaicError(f"{path} cannot be written: {error.strerror}") from None
    missing = "" if shutil.which("systemctl") else "systemctl was not found: does this machine run systemd?\n"
    print(f"Wrote {path}.\n{missing}{NEXT}")
    return 0


def uninstall(args: argparse.Namespace) -> int:
    refuse_host(args, "daemon uninstall")
    path = unit_path()
    if not os.path.lexists(path):
        print(f"There is no {path}.")
        return 0
    _refuse_foreign_file(path)
    try:
        # What `systemctl enable` made.
        (path.parent / "default.target.wants" / NAME).unlink(missing_ok=True)
        path.unlink()
    except OSError as error:
        raise MosaicError(f"{path} cannot be removed: {error.strerror}") from None
    print(
        f"Removed {path}.\nIf it is active, stop it too: systemctl --user stop mosaic; systemctl --user daemon-reload"
    )
    return 0


def unit_path() -> Path:
    return xdg_folder("XDG_CONFIG_HOME", ".config") / "systemd" / "user" / NAME


def unit_text(python: str, root: Path) -> str:
    environment = _quoted(f"MOSAIC_HOME={root}")
    # In a command line, systemd expands variables too.
    command = {"python": _quoted(python.replace("$", "$$")), "root": _quoted(str(root).replace("$", "$$"))}
    return TEMPLATE.format(mark=MARK, environment=environment, **command)


def _quoted(text: str) -> str:
    """The text quoted for systemd: backslashes and double quotes escaped, percent signs doubled."""
    if not text.isprintable():
        # A newline would end the line and begin another directive.
        raise MosaicError(f"{text!a} has characters that a systemd unit cannot contain. Use another folder.")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _refuse_foreign_file(path: Path) -> None:
    try:
        is_ours = path.read_text(errors="replace").startswith(MARK)
    except FileNotFoundError:
        return
    except OSError as error:
        raise MosaicError(f"{path} cannot be read: {error.strerror}") from None
    if not is_ours:
        raise MosaicError(
            f"{path} was not written by mosaic, so it was not changed. Move it away, or see what would be written: "
            "mosaic daemon install --print"
        )
