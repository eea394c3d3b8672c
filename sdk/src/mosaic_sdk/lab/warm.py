"""A Python that has imported libraries already: trials are forked from it, and do not import them again.

Importing torch and what its optimizers need takes seconds of CPU time. fork_server.py is the other side.
"""

import json
import os
import select
import signal
import socket
import subprocess
from typing import Mapping, Optional, Sequence

_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fork_server.py")


class WarmPython:
    """Forks `python -m MODULE ARGUMENTS…`, one process at a time."""

    def __init__(self, python: str, modules: Sequence[str], env: Mapping[str, str], cwd: str, log: str) -> None:
        self._channel, theirs = socket.socketpair()
        self._answers = b""
        self._log = log
        with theirs, open(log, "ab") as output:
            self._server = subprocess.Popen(
                [python, _SERVER, str(theirs.fileno()), *modules],
                cwd=cwd,
                env=dict(env),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def start(
        self, module: str, arguments: Sequence[str], cwd: str, env: Mapping[str, str], fds: Sequence[int]
    ) -> "Forked":
        """`fds`: its stdout and stderr. Its stdin is /dev/null."""
        request = {"module": module, "arguments": list(arguments), "cwd": cwd, "env": dict(env)}
        socket.send_fds(self._channel, [json.dumps(request).encode()], list(fds))
        pid = self.answer(None)
        assert pid is not None
        return Forked(pid, self)

    def answer(self, limit_s: Optional[float]) -> Optional[int]:
        """The server's next answer, or None if it does not come in time."""
        while b"\n" not in self._answers:
            if not select.select([self._channel], [], [], limit_s)[0]:
                return None
            try:
                data = self._channel.recv(100)
            except ConnectionResetError:
                data = b""
            if not data:
                raise ChildProcessError(f"The process that forks trials has ended: {self._last_words}")
            self._answers += data
        line, _, self._answers = self._answers.partition(b"\n")
        return int(line)

    def close(self) -> None:
        self._channel.close()
        self._server.wait()

    @property
    def _last_words(self) -> str:
        with open(self._log, errors="replace") as file:
            return (file.read().strip().split("\n") or [""])[-1]


class Forked:
    """A process of WarmPython, with the methods of subprocess.Popen that a trial uses."""

    stdin = None

    def __init__(self, pid: int, warm: WarmPython) -> None:
        self.pid = pid
        self.returncode: Optional[int] = None
        self._warm = warm

    def poll(self) -> Optional[int]:
        return self._end(0.0)

    def wait(self, timeout: Optional[float] = None) -> int:
        code = self._end(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _end(self, limit_s: Optional[float]) -> Optional[int]:
        if self.returncode is None:
            status = self._warm.answer(limit_s)
            self.returncode = None if status is None else os.waitstatus_to_exitcode(status)
        return self.returncode
