"""Every way in which a worker can go wrong, each with a setting of its own."""

import os
import select
import signal
import sys
import time
from typing import Callable, Dict, List, Tuple

from mosaic_sdk.heartbeat import Heartbeat

from toy_worker.children import leave_children
from toy_worker.config import AtStep, ToyConfig
from toy_worker.garbage import GARBAGE
from toy_worker.telemetry import Telemetry

FOR_EVER_S = 86400.0


class Misbehaviour:
    """Does what the config asks, at the start, at given steps, and at the end."""

    def __init__(self, config: ToyConfig, telemetry: Telemetry, heart: Heartbeat) -> None:
        self.config = config
        self.telemetry = telemetry
        self.heart = heart
        self._eaten: List[bytearray] = []
        self._plan = self._make_plan()

    def at_start(self) -> None:
        config = self.config
        if config.ignore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for number in range(config.stderr_lines):
            print(f"toy: line {number} on stderr", file=sys.stderr)
        if config.long_line_bytes:
            self.telemetry.text("x" * config.long_line_bytes, 0)
        leave_children(config)
        self._eat_memory()
        for number in range(config.burst):
            self.telemetry.metric("toy/burst", float(number), number)

    def at(self, step: int) -> None:
        every = self.config.garbage_every
        if every and step % every == 0:
            name, data = GARBAGE[step // every % len(GARBAGE)]
            self.telemetry.raw(data, f"garbage:{name}", step)
        for act in self._plan.get(step, ()):
            act(step)

    def at_end(self) -> None:
        if self.config.run_failed_exit_0:
            self.telemetry.run_failed("toy worker was asked to fail and to exit with 0")
            self.telemetry.record.close()
            os._exit(0)  # past run_completed

    def _make_plan(self) -> Dict[int, List[Callable[[int], None]]]:
        config = self.config
        requested: Tuple[Tuple[AtStep, Callable[[int], None]], ...] = (
            (config.crash_at, self._crash),
            (config.signal_at, self._kill_self),
            (config.hang_at, self._hang),
            (config.busy_hang_at, self._hang_busily),
            (config.stall_progress_at, self._stall),
            (config.half_line_then_kill, self._print_half_a_line_and_die),
            (config.close_stdout_at, self._close_stdout),
            (config.truncate_stdout_at, self._truncate_stdout),
        )
        plan: Dict[int, List[Callable[[int], None]]] = {}
        for step, act in requested:
            if step is not None:
                plan.setdefault(step, []).append(act)
        return plan

    def _crash(self, step: int) -> None:
        raise RuntimeError(f"toy worker was asked to crash at step {step}")

    def _kill_self(self, step: int) -> None:
        os.kill(os.getpid(), getattr(signal, self.config.kill_self))

    def _hang(self, step: int) -> None:
        """No work, no CPU time, no heartbeats."""
        self.heart.stop()
        do_nothing(self._hang_s)
        self.heart.start()

    def _hang_busily(self, step: int) -> None:
        """No work and no heartbeats, but CPU time, and a dot on stderr every `busy_hang_text_s` (0: none)."""
        self.heart.stop()
        every = self.config.busy_hang_text_s or self._hang_s
        until = time.monotonic() + self._hang_s
        next_text = time.monotonic() + every
        while time.monotonic() < until:
            if time.monotonic() > next_text:
                next_text += every
                os.write(2, b".")
        self.heart.start()

    def _stall(self, step: int) -> None:
        """Heartbeats whose counter does not advance."""
        do_nothing(self._hang_s)

    @property
    def _hang_s(self) -> float:
        return self.config.hang_s or FOR_EVER_S

    def _print_half_a_line_and_die(self, step: int) -> None:
        self.telemetry.raw(b'{"event_type":"step","step_index":%d,"rew' % step, "half", step)
        os.kill(os.getpid(), signal.SIGKILL)

    def _close_stdout(self, step: int) -> None:
        os.close(1)

    def _truncate_stdout(self, step: int) -> None:
        """What `> /dev/stdout` in a script does: it empties the file, if that is allowed."""
        try:
            open("/dev/stdout", "w").close()
        except OSError as error:
            print(f"toy: opening /dev/stdout for writing was refused: {error.strerror}", file=sys.stderr)
        else:
            print("toy: opened /dev/stdout for writing", file=sys.stderr)

    def _eat_memory(self) -> None:
        megabyte = 1 << 20
        if self.config.rlimit_mb:
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (self.config.rlimit_mb * megabyte,) * 2)
        for _ in range(self.config.eat_memory_mb):
            # Not zeros: pages that were never written take no memory.
            self._eaten.append(bytearray(b"\1") * megabyte)


def do_nothing(seconds: float) -> None:
    """Sleep, unless a SIGTERM arrived a moment before: the byte it leaves in the pipe ends the sleep."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
    select.select([read], [], [], seconds)
    signal.set_wakeup_fd(-1)
    os.close(read)
    os.close(write)
