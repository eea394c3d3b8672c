"""Tokens: which caller may make which calls.

The owner's token is in `daemon.token` (0600) and allows every call. A session token allows publishing the telemetry of
one run and nothing else. It is derived from the owner's token, so a restarted daemon can verify it, and its hash is in
the registry, so the token of an old attempt is refused.
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
        """The token of this root; created at the first start."""
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
        """The session token of one attempt, always the same."""
        return hmac.new(self._owner.encode(), f"session {run_id} {attempt}".encode(), hashlib.sha256).hexdigest()


def token_hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def bearer(metadata: object) -> str:
    """The token in the metadata of a call; empty if there is none."""
    for key, value in metadata or ():  # type: ignore[attr-defined]
        if key == "authorization" and isinstance(value, str) and value.startswith("Bearer "):
            return value.removeprefix("Bearer ")
    return ""


def _refuse_open_mode(root: StateRoot) -> None:
    mode = os.stat(root.token).st_mode & 0o777
    if mode & 0o077:
        raise BadRoot(
            f"{root.token} can be read by other users (mode {mode:o}). Delete it; the next start creates a new one: "
            f"rm {root.token}"
        )
