"""Who may call what.

The owner's token lies in `daemon.token` (0600) and opens everything. A session token opens its own run's telemetry and
nothing else; it is derived from the owner's, so a restarted daemon knows it again, and its hash is in the registry, so
an old attempt's is refused.
"""

import hashlib
import hmac
import os
import secrets

from mosaic.model.durable import write_bytes
from mosaic.model.errors import BadRoot
from mosaic.model.rundir import StateRoot


class Tokens:
    def __init__(self, owner: str) -> None:
        self._owner = owner

    @classmethod
    def load(cls, root: StateRoot) -> "Tokens":
        """The token of this root; made at the first start."""
        try:
            _refuse_open_mode(root)
            owner = root.token.read_text().strip()
        except FileNotFoundError:
            owner = ""
        if not owner:
            owner = secrets.token_urlsafe(32)
            write_bytes(root.token, f"{owner}\n".encode(), mode=0o600)
        return cls(owner)

    def is_owner(self, token: str) -> bool:
        return hmac.compare_digest(token.encode(), self._owner.encode())

    def session(self, run_id: str, attempt: int) -> str:
        """The session token of one attempt: the same one each time it is asked for."""
        return hmac.new(self._owner.encode(), f"session {run_id} {attempt}".encode(), hashlib.sha256).hexdigest()


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def bearer(metadata: object) -> str:
    """The token in a call's metadata, or an empty one."""
    for key, value in metadata or ():  # type: ignore[attr-defined]
        if key == "authorization" and isinstance(value, str) and value.startswith("Bearer "):
            return value.removeprefix("Bearer ")
    return ""


def _refuse_open_mode(root: StateRoot) -> None:
    mode = os.stat(root.token).st_mode & 0o777
    if mode & 0o077:
        raise BadRoot(
            f"{root.token} can be read by others (mode {mode:o}). The next start makes a new one after: rm {root.token}"
        )
