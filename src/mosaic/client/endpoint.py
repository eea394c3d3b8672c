"""The daemon's address and the token that authorizes a client."""

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from mosaic.model.daemon_address import read_address
from mosaic.model.durable import read_bytes
from mosaic.model.errors import NoDaemon, NotAllowed
from mosaic.model.place import refuse_shifted
from mosaic.model.rundir import StateRoot

BY_SSH = "ssh://"
LARGEST_TOKEN = 4096


@dataclass(frozen=True)
class Endpoint:
    target: str  # a gRPC target: unix:/path/daemon.sock or 127.0.0.1:50055
    token: str = field(repr=False)
    host: str = ""  # user@box or user@box:/path, if ssh forwards `target` from there
    version: str = ""  # of the daemon; empty if it is not known yet

    @property
    def name(self) -> str:
        """The address in words for people: a forwarded socket's own path says nothing."""
        return f"{BY_SSH}{self.host}" if self.host else self.target


def is_elsewhere() -> bool:
    """Whether MOSAIC_ADDRESS names a daemon, which this client then must not start."""
    return bool(os.environ.get("MOSAIC_ADDRESS"))


def how_to_start(name: str = "") -> str:
    """What to do when no daemon answers at `name`. With MOSAIC_ADDRESS set, `mosaic daemon start` would not help."""
    if not name.startswith(BY_SSH) and is_elsewhere():
        return "MOSAIC_ADDRESS names it: start the daemon there, or unset MOSAIC_ADDRESS to use this machine's own."
    return f"Start it with: {command_there(name)} daemon start"


def command_there(name: str) -> str:
    """`mosaic`, as it is called here for the machine of an endpoint's name."""
    return by_ssh(name.removeprefix(BY_SSH)) if name.startswith(BY_SSH) else "mosaic"


def by_ssh(host: str) -> str:
    """The state folder in `user@box:/path` is not an address that ssh understands, so it is passed as MOSAIC_HOME."""
    box, _, home = host.partition(":")
    return f"ssh {box} MOSAIC_HOME={shlex.quote(home)} mosaic" if home else f"ssh {box} mosaic"


def find_endpoint(root: StateRoot) -> Endpoint | None:
    """The endpoint that the environment names or the daemon of `root` wrote; None if there is none yet.

    WrongPlace for a root that was copied or moved: its daemon.addr leads to the daemon of the original.
    """
    target, version = os.environ.get("MOSAIC_ADDRESS", ""), ""
    if not target:
        refuse_shifted(root)
        found = read_address(root)
        target, version = next(iter(found.addresses), ""), found.mosaic
    token = _token(root)
    if not target or token is None:
        return None
    return Endpoint(target, token, version=version)


def endpoint_elsewhere(root: StateRoot) -> Endpoint:
    found = find_endpoint(root)
    if found is None:
        raise NoDaemon(
            f"MOSAIC_ADDRESS is set, but {root.token} does not exist. Set MOSAIC_TOKEN_FILE to the token's file."
        )
    return found


def _token(root: StateRoot) -> str | None:
    named = os.environ.get("MOSAIC_TOKEN_FILE")
    path = Path(named) if named else root.token
    try:
        return (_read_named(path) if named else read_bytes(path, LARGEST_TOKEN)).decode().strip()
    except FileNotFoundError:
        if named:
            raise NotAllowed(f"MOSAIC_TOKEN_FILE names {path}, which does not exist.") from None
        return None
    except PermissionError:
        raise NotAllowed(f"You may not read {path}: this daemon belongs to another user.") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or "not a text"
        raise NotAllowed(f"{path} is not a token ({why}). Delete it and restart the daemon, which writes it.") from None


def _read_named(path: Path) -> bytes:
    """What the user named may be a pipe, as in `<(pass show token)`; but it is no more than a token."""
    with open(path, "rb") as file:
        data = file.read(LARGEST_TOKEN + 1)
    if len(data) > LARGEST_TOKEN:
        raise ValueError
    return data
