"""`--host user@box`: the daemon of another machine. ssh forwards its socket and reads its token.

`user@box:/path` names a state folder there; the default is the remote shell's MOSAIC_HOME, or else its default.
"""

import json
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import TracebackType

from mosaic.client.endpoint import Endpoint, how_to_start
from mosaic.model.errors import MosaicError, NoDaemon
from mosaic.model.host import why_bad_host

FORWARD_WITHIN_S = 60.0  # ssh may ask for a password in the terminal
OPTIONS = (
    *("-o", "ConnectTimeout=15"),
    *("-o", "ServerAliveInterval=10"),  # ssh ends, and is started again, when the network has gone
    *("-o", "LogLevel=ERROR"),  # not one line in the terminal per attempt to connect to a daemon that is away
)


class Tunnel:
    """An ssh process that forwards the remote socket while this object is open.

    1. `reopen` forwards to the same path, so a client with open streams finds the daemon again.
    2. After `close` no ssh runs, even if another thread is still in `open`.
    """

    def __init__(self, host: str) -> None:
        if why := why_bad_host(host):
            raise MosaicError(f"{host!r} {why}")
        self._where = host
        self.host, _, self._home = host.partition(":")
        # mkdtemp makes it 0700: a process that can open the socket can connect to the daemon.
        self._folder = Path(tempfile.mkdtemp(prefix="mosaic-ssh-"))
        self._local = self._folder / "daemon.sock"
        self._words = self._folder / "ssh.log"
        self._target = ""
        self._ssh: "subprocess.Popen[bytes] | None" = None
        self._is_closed = False
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        return self._ssh is not None and self._ssh.poll() is None

    def open(self) -> Endpoint:
        self._target, token = self._read()
        self._forward()
        return Endpoint(f"unix:{self._local}", token, self._where)

    def reopen(self) -> None:
        """Forward again, after ssh ended."""
        self._end()
        self._forward()

    def last_words(self) -> str:
        """What ssh said last, such as `Connection refused`."""
        try:
            lines = self._words.read_text(errors="replace").split("\n")
        except OSError:
            return ""
        said = [line.strip() for line in lines if line.strip()]
        return said[-1].removeprefix("ssh: ").rstrip(".") if said else ""

    def _read(self) -> tuple[str, str]:
        """The remote daemon's address and token."""
        ssh = self._start(read_command(self.host, self._home))
        output = ssh.communicate()[0].decode(errors="replace")
        if ssh.returncode == 255 or ssh.returncode < 0:
            raise NoDaemon(self._unreachable())
        if ssh.returncode:
            raise NoDaemon(f"No daemon has run on {self.host}. {how_to_start(Endpoint('', '', self._where).name)}")
        try:
            return parse_remote(output)
        except (ValueError, LookupError, TypeError):
            raise NoDaemon(f"The shell of {self.host} prints more than it was asked for: {output[:80]!r}.") from None

    def _forward(self) -> None:
        self._local.unlink(missing_ok=True)  # ssh does not replace the socket that an earlier ssh left
        self._start(forward_command(self.host, self._local, self._target))
        deadline = time.monotonic() + FORWARD_WITHIN_S
        while not self._local.exists():
            if not self.is_open or time.monotonic() > deadline:
                raise NoDaemon(self._unreachable())
            time.sleep(0.05)

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._is_closed:
                raise NoDaemon(f"The connection to {self.host} is closed.")
            with self._words.open("wb") as words:
                try:
                    self._ssh = subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=words
                    )
                except FileNotFoundError:
                    raise NoDaemon("There is no ssh on this machine. Install an ssh client to use --host.") from None
            return self._ssh

    def _unreachable(self) -> str:
        words = self.last_words()
        reason = f": {words}." if words else "."
        return f"ssh cannot reach {self.host}{reason} See what is wrong with: ssh {self.host} true"

    def _end(self) -> None:
        if self._ssh is not None:
            self._ssh.terminate()
            self._ssh.wait()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
        self._end()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> "Tunnel":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def read_command(host: str, home: str = "") -> list[str]:
    """An ssh command that prints daemon.addr and then daemon.token."""
    root = shlex.quote(home) if home else '"${MOSAIC_HOME:-${XDG_STATE_HOME:-$HOME/.local/state}/mosaic}"'
    script = f"cd -- {root}/trainer && cat daemon.addr && echo && cat daemon.token"
    # A login shell, so that a MOSAIC_HOME set in the profile is used.
    return ["ssh", *OPTIONS, "--", host, f"sh -lc {shlex.quote(script)}"]


def forward_command(host: str, local: Path, target: str) -> list[str]:
    remote = target.removeprefix("unix:")
    return ["ssh", *OPTIONS, "-N", "-o", "ExitOnForwardFailure=yes", "-L", f"{local}:{remote}", "--", host]


def parse_remote(output: str) -> tuple[str, str]:
    address, end = json.JSONDecoder().raw_decode(output.lstrip())
    return str(address["addresses"][0]), output.lstrip()[end:].strip()
