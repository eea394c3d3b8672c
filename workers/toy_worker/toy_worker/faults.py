"""Misbehaviour in interactive mode. A step is one `step` or `select_action`, counted from 0 while the process lives.

crash_at              an exception: the command is answered with an error
signal_at, kill_self  the process dies
hang_at, hang_s       no answer
garbage_every         a line that is no answer, before the answer
long_line_bytes       the same, once, at the first step
illegal_action_at     select_action answers with an action that no environment has
fork_children …       processes that outlive it
"""

import os
import signal
import sys

from toy_worker.children import leave_children
from toy_worker.config import ToyConfig
from toy_worker.garbage import GARBAGE
from toy_worker.misbehaviour import FOR_EVER_S, do_nothing

ILLEGAL = 99


class Faults:
    """Does what the config asks. `answers` is the descriptor of the operator channel."""

    def __init__(self, config: ToyConfig, answers: int) -> None:
        self._config = config
        self._answers = answers
        self._step = -1

    def at_start(self) -> None:
        config = self._config
        if config.ignore_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for number in range(config.stderr_lines):
            print(f"toy: line {number} on stderr", file=sys.stderr)
        leave_children(config)

    def at_next_step(self) -> None:
        self._step += 1
        config, step = self._config, self._step
        if config.long_line_bytes and step == 0:
            self._print(b"x" * config.long_line_bytes)
        if config.garbage_every and step % config.garbage_every == 0:
            self._print(GARBAGE[step // config.garbage_every % len(GARBAGE)][1])
        if step == config.hang_at:
            do_nothing(config.hang_s or FOR_EVER_S)
        if step == config.signal_at:
            os.kill(os.getpid(), getattr(signal, config.kill_self))
        if step == config.crash_at:
            raise RuntimeError(f"toy worker was asked to crash at step {step}")

    def spoil(self, action: int) -> int:
        """The action, or an illegal one if this is the step for it."""
        return ILLEGAL if self._step == self._config.illegal_action_at else action

    def _print(self, line: bytes) -> None:
        data = line if line.endswith(b"\n") else line + b"\n"
        while data:
            data = data[os.write(self._answers, data) :]
