"""The processes of a run: one that dies is restarted, and at the end they exit in order."""

from __future__ import annotations

import logging
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from dreamer_worker.life import READY, Life, write_work

log = logging.getLogger(__name__)

GRACE_S = 7.0  # for the agent's last checkpoint; MOSAIC kills after 10
LAST_S = 1.0  # for all others together …
PATIENT_S = 15.0  # … when the run is finished and there is time
RECENT_S = 60.0
AGENT_RECENT_S = 900.0  # of its errors: each restart compiles for minutes
MOST_DEATHS, MOST_ERRORS = 20, 3  # of one process in that time, before the run is given up
DELAYS_S = (0.0, 0.2, 0.5, 1.0, 2.0)


class RoleFailed(Exception):
    """A process of the run cannot do its work; the text says why."""


class Child:
    """One process of the run, across its restarts."""

    def __init__(self, name: str, work: Callable[[Life], None], variables: Mapping[str, str] | None = None) -> None:
        import cloudpickle

        self.name = name
        self.deaths: list[float] = []
        self.errors: list[float] = []
        self.has_been_ready = False
        self.is_ready = False  # since its last start
        self.process: subprocess.Popen[bytes] | None = None
        self._work = cloudpickle.dumps(work)
        self._variables = dict(variables or {})
        self._ready_fd = -1

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def renew(self, work: Callable[[Life], None]) -> None:
        """Do this work from its next start on, and end the process that does the old one."""
        import cloudpickle

        self._work = cloudpickle.dumps(work)
        self.kill()

    def start(self, on_end: Callable[[Child, int], None]) -> None:
        self._ready_fd, child_fd = os.pipe()
        os.set_blocking(self._ready_fd, False)
        self.is_ready = False
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dreamer_worker.life", str(child_fd), self.name],
            stdin=subprocess.PIPE,
            pass_fds=(child_fd,),
            env={**os.environ, **self._variables},
        )
        os.close(child_fd)
        try:
            write_work(self.process.stdin, self._work)
        except BrokenPipeError:
            pass  # it is dead already; the watching thread reports it
        # Blocks in waitpid: no polling.
        threading.Thread(
            target=self._watch, args=(self.process, on_end), name=f"watch-{self.name}", daemon=True
        ).start()

    def stop(self) -> None:
        """Ask it to exit by closing its stdin. It ignores signals."""
        if self.process and self.process.stdin and not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass

    def join(self, timeout_s: float) -> bool:
        if self.process is None:
            return True
        try:
            self.process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        if self.process is not None and self.is_alive:
            self.process.kill()
            self.process.wait()

    def error_text(self) -> str:
        """The error that a dead process reported through its pipe."""
        text = self._read_pipe()
        os.close(self._ready_fd)
        return text

    def has_begun(self) -> bool:
        """Whether it has reported that it is ready."""
        self._read_pipe()
        return self.is_ready

    def _read_pipe(self) -> str:
        data = b""
        try:
            while chunk := os.read(self._ready_fd, 4096):
                data += chunk
        except BlockingIOError:
            pass
        self.is_ready |= data.startswith(READY)
        self.has_been_ready |= self.is_ready
        return data.removeprefix(READY).decode(errors="replace")

    def _watch(self, process: subprocess.Popen[bytes], on_end: Callable[[Child, int], None]) -> None:
        on_end(self, process.wait())


class AgentThread:
    """The agent as a thread of the launcher (agent_process: false). What kills one kills the other."""

    def __init__(self, name: str, work: Callable[[Life], None]) -> None:
        self.name = name
        self.deaths: list[float] = []
        self.errors: list[float] = []
        self.has_been_ready = False
        self.pid = os.getpid()
        self._work = work
        self._life = Life()
        self._error = ""
        self._thread: threading.Thread | None = None

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self, on_end: Callable[[Any, int], None]) -> None:
        self._thread = threading.Thread(target=self._run, args=(on_end,), name=self.name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._life.stop()

    def join(self, timeout_s: float) -> bool:
        if self._thread:
            self._thread.join(timeout_s)
        return not self.is_alive

    def kill(self) -> None:
        pass

    def has_begun(self) -> bool:
        return True

    def error_text(self) -> str:
        return self._error

    def _run(self, on_end: Callable[[Any, int], None]) -> None:
        code = 0
        try:
            self._work(self._life)
        except Exception as error:  # noqa: BLE001  the edge of the thread: the supervisor reports it
            self._error, code = f"{type(error).__name__}: {error}", 1
        on_end(self, code)


class Supervisor:
    """Keeps the children running until the agent is done. It sleeps while nothing happens."""

    def __init__(self, children: list[Any], agent: str = "agent", last_s: float = LAST_S) -> None:
        self.children = {child.name: child for child in children}
        self.restarts = 0
        self._agent = agent
        self._last_s = last_s
        self._events: queue.SimpleQueue[tuple[Any, int | None]] = queue.SimpleQueue()
        self._is_stopping = False

    def run(self) -> None:
        """Supervise until the run is done; RoleFailed if a process keeps failing."""
        try:
            for child in self.children.values():
                self._start(child)
            while True:
                child, code = self._events.get()
                if child is None:
                    return
                if code is None:
                    self._start(child)
                elif child.name == self._agent and code == 0:
                    self._last_s = PATIENT_S
                    return
                else:
                    self._restart(child, code)
        finally:
            self.stop()

    def renew(self, name: str, work: Callable[[Life], None]) -> None:
        """Have this process restarted with other work; any thread may call it."""
        self.children[name].renew(work)

    def finish(self) -> None:
        """Have `run` return soon; any thread may call it."""
        self._events.put((None, None))

    def stop(self) -> None:
        """Stop the agent first, because its last checkpoint needs the others; then the rest; kill what remains."""
        self._is_stopping = True
        agent = self.children.get(self._agent)
        # An agent that is still being built has nothing to save and cannot be interrupted.
        agents = [agent] if agent and agent.is_alive and agent.has_begun() else []
        others = [child for child in self.children.values() if child not in agents]
        for group, limit_s in ((agents, GRACE_S), (others, self._last_s)):
            for child in group:
                child.stop()
            until = time.monotonic() + limit_s
            for child in group:
                child.join(until - time.monotonic())
        for child in self.children.values():
            child.kill()

    def _start(self, child: Any) -> None:
        if not self._is_stopping:
            child.start(lambda ended, code: self._events.put((ended, code)))

    def _restart(self, child: Any, code: int) -> None:
        """Restart a dead child after a delay, or give up if it keeps failing."""
        text = child.error_text()
        now = time.monotonic()
        child.deaths = [*(at for at in child.deaths if at > now - RECENT_S), now]
        recent_s = AGENT_RECENT_S if child.name == self._agent else RECENT_S
        child.errors = [at for at in child.errors if at > now - recent_s] + ([now] if code > 0 else [])
        how = text or _how(code)
        hopeless = code > 0 and not child.has_been_ready
        if hopeless or len(child.errors) > MOST_ERRORS or len(child.deaths) > MOST_DEATHS:
            raise RoleFailed(f"The {child.name} process keeps failing: {how}")
        self.restarts += 1
        delay_s = DELAYS_S[min(len(child.deaths), len(DELAYS_S)) - 1]
        log.warning("the %s process ended (%s) and will be restarted", child.name, how)
        timer = threading.Timer(delay_s, lambda: self._events.put((child, None)))
        timer.daemon = True
        timer.start()


def _how(code: int) -> str:
    if code >= 0:
        return f"exit code {code}" if code else "it exited early"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
