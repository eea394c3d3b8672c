"""Which user owns the state root. Every command asks this, so the module imports little."""

import os
import pwd
from pathlib import Path

from mosaic.model.errors import BadRoot

ADVICE = "Set MOSAIC_HOME to your own folder on a local disk of this machine."


def refuse_foreign(path: Path) -> None:
    """Raise BadRoot when the folder, or one above it that we may not enter, belongs to another user. Writes nothing."""
    try:
        owner = path.stat().st_uid
    except PermissionError:
        closed = _nearest_visible(path)
        who = user_name(closed.stat().st_uid)
        raise BadRoot(
            f"The state folder {path} is inside {closed}, which belongs to {who} and which you "
            f"({user_name(os.geteuid())}) may not enter. {ADVICE}"
        ) from None
    except OSError:
        return  # missing, or not a folder: creating it will report that
    if owner != os.geteuid():
        raise BadRoot(
            f"The state folder {path} belongs to {user_name(owner)}, and you are {user_name(os.geteuid())}. {ADVICE}"
        )


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _nearest_visible(path: Path) -> Path:
    for place in path.parents:
        try:
            place.stat()
        except PermissionError:
            continue
        return place
    return Path("/")
