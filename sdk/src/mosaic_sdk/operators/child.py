"""A child process that is asked over pipes: one JSON object per line, questions on its stdin, answers on its stdout.

    with Child(argv, name="ppo", env=env, cwd=folder) as child:
        ready = child.ask({"cmd": "reset", "seed": 3}, timeout_s=60)

Promises:

1. `ask` returns an answer, or raises within its timeout: ChildDied with the reason, or ChildHung. After either the
   child is gone: an answer that comes too late cannot be taken for the next one.
2. A child that neither reads nor answers, prints without end or closes its pipes blocks no one for longer than that.
3. A line that is not an answer is a library's output: it is logged like stderr, and skipped.
4. `close` leaves no process of the child's group and no zombie.

One thread may use a child at a time; different children are independent.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from types import TracebackType
from typing import IO, Any, Callable, Deque, Dict, Mapping, Optional, Sequence, Type

from mosaic_sdk import names
from mosaic_sdk.emit import to_json
from mosaic_sdk.operators.operator import OperatorError

Message = Dict[str, Any]
Variables = Mapping[str, Optional[str]]  # None: the variable is not set
Log = Callable[[str], None]
LONGEST_LINE = 64 << 20  # bytes; a 4K frame as base64 is half of it
_CHUNK = 1 << 20
_LOOK_S = 0.25  # how often a silent child is checked: its own children may keep its stdout open after its death
_LAST_LINES = 20  # of stderr that are kept
_SHOWN_LINES = 3  # of these in a reason
_LONGEST_TEXT = 2000  # characters of a line that is logged
_STRANGERS = {names.EPISODE_END: names.EPISODE_DONE, names.AGENT_INITIALIZED: names.AGENT_READY}


class ChildError(OperatorError):
    """The child is gone. `reason` says why, in words."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}" if name else reason)
        self.name = name
        self.reason = reason


class ChildDied(ChildError):
    """It exited, was killed, or closed its output."""


class ChildHung(ChildError):
    """It did not answer in time, and was killed."""


class Child:
    """A started child. Use it as a context manager, or call close()."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        name: str = "",
        env: Optional[Variables] = None,
        cwd: "Optional[str | os.PathLike[str]]" = None,
        log: Optional[Log] = None,
    ) -> None:
        """`env`: what differs from this process's environment. `log` is given each line that the child prints besides
        answers; default: stderr, after `[name] `.
        """
        self.name = name
        self.stderr_lines: Deque[str] = deque(maxlen=_LAST_LINES)
        self._log = log or _to_stderr(name)
        self._error: Optional[ChildError] = None
        self._buffer = bytearray()
        self._searched = 0  # bytes of the buffer that hold no newline
        try:
            # Its own session: a signal to the conductor's group or terminal is not for it, and its group can be killed.
            self._process = subprocess.Popen(
                list(argv),
                env=_environment(env or {}),
                cwd=cwd,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise ChildDied(name, f"cannot be started: {error.filename or argv[0]}: {error.strerror}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._pump = threading.Thread(target=self._read_stderr, args=(self._process.stderr,), daemon=True)
        self._pump.start()

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it may be asked."""
        return self._error is None and not self._has_exited()

    def ask(self, message: Mapping[str, Any], timeout_s: Optional[float]) -> Message:
        """The first answer to a message. `timeout_s` None: wait as long as the child lives."""
        deadline = _deadline(timeout_s)
        self._send(to_json(message).encode("utf-8", "backslashreplace") + b"\n", deadline, timeout_s)
        return self._next_answer(deadline, timeout_s)

    def read(self, timeout_s: Optional[float]) -> Message:
        """A further answer to the last message."""
        return self._next_answer(_deadline(timeout_s), timeout_s)

    def close(self, grace_s: float = 0.0) -> None:
        """End the child and its group. `grace_s`: how long it may take to end by itself after the end of its stdin."""
        if self._error is None:
            with contextlib.suppress(OSError):
                self._stdin.close()
            self._wait_for_exit(grace_s)
            self._end(ChildDied(self.name, "was closed"))

    def _send(self, line: bytes, deadline: Optional[float], timeout_s: Optional[float]) -> None:
        left = memoryview(line)
        while left:
            # Its output is read meanwhile: a child that prints before it reads would wait for us, and we for it.
            if not self._wait(deadline, timeout_s, for_writing=True):
                raise self._died()
            try:
                left = left[os.write(self._stdin.fileno(), left[:_CHUNK]) :]
            except BlockingIOError:
                continue
            except (OSError, ValueError):
                self._wait_for_exit(_LOOK_S)
                raise self._died() from None

    def _next_answer(self, deadline: Optional[float], timeout_s: Optional[float]) -> Message:
        while True:
            line = self._take_line()
            if line is not None:
                answer = self._parse(line)
                if answer is not None:
                    return answer
            elif not self._wait(deadline, timeout_s, for_writing=False):
                raise self._died()

    def _take_line(self) -> Optional[bytes]:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    def _parse(self, line: bytes) -> Optional[Message]:
        """An answer, or None for a line that is none."""
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if isinstance(answer, dict) and isinstance(answer.get(names.TYPE_KEY), str):
            answer[names.TYPE_KEY] = _STRANGERS.get(answer[names.TYPE_KEY], answer[names.TYPE_KEY])
            return answer
        text = line.decode("utf-8", "replace").strip()
        if text:
            self._log(_shortened(text))
        return None

    def _wait(self, deadline: Optional[float], timeout_s: Optional[float], for_writing: bool) -> bool:
        """Wait until there is output, which is read, or room for input; whether the child can still speak."""
        if self._error is not None:
            raise self._error
        poller = select.poll()
        poller.register(self._stdout, select.POLLIN)
        if for_writing:
            poller.register(self._stdin, select.POLLOUT)
        while True:
            left = _LOOK_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise self._hung(timeout_s)
            events = dict(poller.poll(1000 * min(left, _LOOK_S)))
            if self._stdout.fileno() in events:
                return self._fill() != 0
            if events:
                return True
            if self._has_exited():
                # What it had written before is in the pipe by now.
                return bool(self._fill())

    def _fill(self) -> Optional[int]:
        """Read what is there: the number of bytes, 0 at the end of the output, None if there is nothing now."""
        data = self._stdout.read(_CHUNK)
        if not data:
            return None if data is None else 0
        self._buffer += data
        if len(self._buffer) > LONGEST_LINE and b"\n" not in self._buffer[self._searched :]:
            raise self._end(ChildDied(self.name, f"printed a line of more than {LONGEST_LINE >> 20} MiB"))
        return len(data)

    def _died(self) -> ChildError:
        self._wait_for_exit(2 * _LOOK_S)
        if not self._has_exited():
            return self._end(ChildDied(self.name, "closed its output" + self._last_words()))
        self._kill_group()
        code = self._process.wait()
        self._pump.join(_LOOK_S)  # for its last lines
        self._log_rest()
        return self._end(ChildDied(self.name, _exit_words(code) + self._last_words()))

    def _log_rest(self) -> None:
        """What it printed before it died, if the question could not even be sent: it may say why."""
        self._fill()  # a pipe holds less than one chunk
        while (line := self._take_line()) is not None:
            self._parse(line)

    def _hung(self, timeout_s: Optional[float]) -> ChildError:
        return self._end(ChildHung(self.name, f"no answer in {timeout_s:g} s" + self._last_words()))

    def _end(self, error: ChildError) -> ChildError:
        """Leave nothing of the child; the error that every later question gets."""
        if self._error is None:
            self._error = error
            self._kill_group()
            self._process.wait()
            self._pump.join(_LOOK_S)
            for pipe in (self._stdin, self._stdout):
                with contextlib.suppress(OSError):
                    pipe.close()
        return self._error

    def _kill_group(self) -> None:
        # Before the child is reaped: until then no other group can have its number.
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _has_exited(self) -> bool:
        """Without reaping it."""
        if self._process.returncode is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def _wait_for_exit(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not self._has_exited() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _last_words(self) -> str:
        shown = [line for line in self.stderr_lines if line.strip()][-_SHOWN_LINES:]
        return ": " + " | ".join(shown) if shown else ""

    def _read_stderr(self, stderr: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in iter(lambda: stderr.readline(_CHUNK), b""):
                text = _shortened(line.decode("utf-8", "replace").rstrip())
                self.stderr_lines.append(text)
                self._log(text)
        stderr.close()


def _deadline(timeout_s: Optional[float]) -> Optional[float]:
    return None if timeout_s is None else time.monotonic() + timeout_s


def _exit_words(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text)} characters)"


def _environment(changes: Variables) -> Dict[str, str]:
    merged: Dict[str, Optional[str]] = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _to_stderr(name: str) -> Log:
    prefix = f"[{name}] " if name else ""

    def log(text: str) -> None:
        # One write, so that the lines of several children stay whole.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{prefix}{text}\n")
            sys.stderr.flush()

    return log
