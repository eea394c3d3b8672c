"""Tokens: which caller may make which calls.

The owner's token is in `daemon.token` (0600) and allows every call. A session token allows publishing the telemetry of
one run and nothing else. It is derived from the owner's token, so a restarted daemon can verify it, and its hash is in
the registry, so the token of an old attempt is refused. A driver's token is derived in the same way; it allows calls
about the runs of one experiment while the driver is live (see scope.py).
"""

import hashlib
import hmac
import secrets

from mosaic.model.durable import read_bytes, write_bytes
from mosaic.model.errors import BadRoot
from mosaic.model.rundir import StateRoot

LARGEST_TOKEN = 4096


class Tokens:
    def __init__(self, owner: str) -> None:
        self._owner = owner

    @classmethod
    def load(cls, root: StateRoot) -> "Tokens":
        """The token of this root; created at the first start."""
        owner = _stored(root)
        if not owner:
            owner = secrets.token_urlsafe(32)
            write_bytes(root.token, f"{owner}\n".encode(), mode=0o600)
        return cls(owner)

    def is_owner(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._owner.encode())

    def session(self, run_id: str, attempt: int) -> str:
        """The session token of one attempt, always the same."""
        return self._derived(f"session {run_id} {attempt}")

    def driver(self, run_id: str, attempt: int, experiment: str) -> str:
        """The token of one attempt of a driver. Only runs that are drivers are ever given one."""
        return self._derived(f"driver {run_id} {attempt} {experiment}")

    def parts(self, run_id: str) -> str:
        """What a run and its parts know each other by. It is no token: the daemon accepts it for nothing."""
        return self._derived(f"parts {run_id}")

    def _derived(self, text: str) -> str:
        return hmac.new(self._owner.encode(), text.encode(), hashlib.sha256).hexdigest()


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def bearer(metadata: object) -> str:
    """The token in the metadata of a call; empty if there is none."""
    for key, value in metadata or ():  # type: ignore[attr-defined]
        if key == "authorization" and isinstance(value, str) and value.startswith("Bearer "):
            return value.removeprefix("Bearer ")
    return ""


def _stored(root: StateRoot) -> str:
    """The token in the file; empty if there is none. BadRoot for a FIFO, a link, another user's file and the like."""
    try:
        text = read_bytes(root.token, LARGEST_TOKEN).decode()
        _refuse_open_mode(root)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or "not a text"
        raise BadRoot(f"{root.token} is not a token ({why}). {_delete(root)}") from None
    return text.strip()


def _refuse_open_mode(root: StateRoot) -> None:
    mode = root.token.lstat().st_mode & 0o777
    if mode & 0o077:
        raise BadRoot(f"{root.token} can be read by other users (mode {mode:o}). {_delete(root)}")


def _delete(root: StateRoot) -> str:
    return f"Delete it; the next start creates a new one: rm -r {root.token}"
