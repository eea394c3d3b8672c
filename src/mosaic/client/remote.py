"""`--host user@box`: the daemon of another machine. ssh forwards its socket and reads its token.

`user@box:/path` names a state folder there; the default is the remote shell's MOSAIC_HOME, or else its default.
"""

import json
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from mosaic.client.endpoint import Endpoint
from mosaic.model.errors import NoDaemon

FORWARD_WITHIN_S = 20.0


class Tunnel:
    """An ssh process that forwards the remote socket while this object is open."""

    def __init__(self, host: str) -> None:
        self.host, _, self._home = host.partition(":")
        # mkdtemp makes it 0700: a process that can open the socket can connect to the daemon.
        self._folder = Path(tempfile.mkdtemp(prefix="mosaic-ssh-"))
        self._ssh: "subprocess.Popen[bytes] | None" = None

    def open(self) -> Endpoint:
        target, token = read_remote(self.host, self._home)
        local = self._folder / "daemon.sock"
        self._ssh = subprocess.Popen(forward_command(self.host, local, target), stdin=subprocess.DEVNULL)
        self._wait_for(local)
        return Endpoint(f"unix:{local}", token)

    def _wait_for(self, local: Path) -> None:
        assert self._ssh is not None
        deadline = time.monotonic() + FORWARD_WITHIN_S
        while not local.exists():
            if self._ssh.poll() is not None or time.monotonic() > deadline:
                raise NoDaemon(f"ssh could not forward the daemon's socket from {self.host}.")
            time.sleep(0.05)

    def __enter__(self) -> "Tunnel":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._ssh is not None:
            self._ssh.terminate()
            self._ssh.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def read_command(host: str, home: str = "") -> list[str]:
    """An ssh command that prints daemon.addr and then daemon.token."""
    root = shlex.quote(home) if home else '"${MOSAIC_HOME:-${XDG_STATE_HOME:-$HOME/.local/state}/mosaic}"'
    script = f"cd {root}/trainer && cat daemon.addr && echo && cat daemon.token"
    # A login shell, so that a MOSAIC_HOME set in the profile is used.
    return ["ssh", host, f"sh -lc {shlex.quote(script)}"]


def forward_command(host: str, local: Path, target: str) -> list[str]:
    remote = target.removeprefix("unix:")
    return ["ssh", "-N", "-o", "ExitOnForwardFailure=yes", "-L", f"{local}:{remote}", host]


def read_remote(host: str, home: str = "") -> tuple[str, str]:
    """The remote daemon's address and token."""
    try:
        output = subprocess.run(read_command(host, home), stdout=subprocess.PIPE, check=True).stdout.decode()
    except FileNotFoundError:
        raise NoDaemon("There is no ssh on this machine. Install an ssh client to use --host.") from None
    except subprocess.CalledProcessError as error:
        if error.returncode == 255:
            raise NoDaemon(f"ssh cannot reach {host}. See what is wrong with: ssh {host} true") from None
        where = f"MOSAIC_HOME={shlex.quote(home)} " if home else ""
        raise NoDaemon(f"No daemon has run on {host}. Start it with: ssh {host} {where}mosaic daemon start") from None
    return parse_remote(output)


def parse_remote(output: str) -> tuple[str, str]:
    address, end = json.JSONDecoder().raw_decode(output.lstrip())
    return str(address["addresses"][0]), output.lstrip()[end:].strip()
