"""Which folder is the state root: MOSAIC_HOME, else $XDG_STATE_HOME/mosaic, else ~/.local/state/mosaic."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from mosaic.model.errors import BadRoot

LONGEST = 1024  # bytes: the paths of a run's files are longer, and the kernel refuses those over 4096


def state_home(environment: Mapping[str, str]) -> Path:
    """The absolute path of the state root; BadRoot, naming the variable, if it cannot be one."""
    named = environment.get("MOSAIC_HOME")
    path = _expanded(named) if named else _default(environment)
    refuse_odd(path)
    return path


def refuse_odd(path: Path) -> None:
    """Raise BadRoot for a path that messages, addresses and JSON cannot carry, or that is not a folder's."""
    text = os.fspath(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadRoot(f"The state folder {text!r} is not valid UTF-8. Set MOSAIC_HOME to another path.") from None
    if not text.isprintable():
        raise BadRoot(f"The state folder {text!r} contains a control character. Set MOSAIC_HOME to another path.")
    if len(os.fsencode(text)) > LONGEST:
        raise BadRoot(
            f"The path of the state folder ({text[:40]}…) is over {LONGEST} bytes. Set MOSAIC_HOME to a shorter one."
        )
    _refuse_file(path)


def _refuse_file(path: Path) -> None:
    # Also a folder above it: `MOSAIC_HOME=notes.txt/state`.
    for place in (path, *path.parents):
        try:
            mode = place.stat().st_mode
        except OSError:
            continue
        if not stat.S_ISDIR(mode):
            what = f"{path} is" if place == path else f"{path} is inside {place}, which is"
            raise BadRoot(f"The state folder {what} not a folder but a file. Set MOSAIC_HOME to a folder.")
        return


def _expanded(named: str) -> Path:
    try:
        return Path(named).expanduser().absolute()
    except RuntimeError:
        raise BadRoot(f"MOSAIC_HOME is {named!r}, and there is no such user. Set it to an absolute path.") from None


def _default(environment: Mapping[str, str]) -> Path:
    # The specification of XDG says to ignore a relative path. It would mean another folder in every working folder.
    state = Path(environment.get("XDG_STATE_HOME") or "")
    if state.is_absolute():
        return state / "mosaic"
    try:
        return Path.home() / ".local" / "state" / "mosaic"
    except RuntimeError:
        raise BadRoot("This user has no home folder. Set MOSAIC_HOME to a folder on a local disk.") from None
