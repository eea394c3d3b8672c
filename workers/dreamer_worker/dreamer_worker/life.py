"""A process of the run: how it starts, reports that it is ready, and is stopped.

stdin    the factory of its work (cloudpickle), then nothing: when it closes, the process ends. So a launcher that was
         killed leaves no orphaned process, and a SIGTERM to the whole process tree still stops it in order
pipe     one byte when it is ready, or the text of the error that ended it
"""

from __future__ import annotations

import faulthandler
import logging
import os
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from mosaic_sdk.config import ConfigError

READY = b"\x01"
LINGER_S = 8.0
LAST_RESORT_S = 60.0
_LENGTH = struct.Struct("<Q")


class Life:
    """Passed to the work of a process: the request to stop, and how to report that it is ready."""

    def __init__(self, ready_fd: int = -1) -> None:
        self._stop = threading.Event()
        self._ready_fd = ready_fd

    @property
    def is_over(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until a stop is requested; returns whether it is."""
        return self._stop.wait(timeout_s)

    def stop(self) -> None:
        self._stop.set()

    def ready(self) -> None:
        if self._ready_fd >= 0:
            os.write(self._ready_fd, READY)

    def fail(self, text: str) -> None:
        if self._ready_fd >= 0:
            os.write(self._ready_fd, text.encode()[:3000])

    def linger(self, is_done: Callable[[], bool], limit_s: float = LINGER_S) -> None:
        """Wait a little while other processes may still need this one."""
        until = time.monotonic() + limit_s
        while not is_done() and time.monotonic() < until:
            time.sleep(0.05)  # only at the very end of a run


def write_work(pipe: Any, work: bytes) -> None:
    pipe.write(_LENGTH.pack(len(work)))
    pipe.write(work)
    pipe.flush()


def main() -> int:
    """python -m dreamer_worker.life READY_FD NAME: do the work that stdin describes. The name is shown by `ps`."""
    logging.basicConfig(level=os.environ.get("DREAMER_LOG", "WARNING"), format="%(levelname)s %(name)s: %(message)s")
    # The launcher stops the processes in order; a signal to the whole tree must not change that.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    life = Life(int(sys.argv[1]))
    source = sys.stdin.buffer
    try:
        import cloudpickle

        work = cloudpickle.loads(_read_work(source))
        threading.Thread(target=_watch, args=(source, life), name="lifeline", daemon=True).start()
        work(life)
    except ConfigError as error:  # for the user to fix: a traceback would hide the message
        life.fail(str(error))
        leave(1)
    except Exception as error:  # noqa: BLE001  the edge of the process: the launcher reports it
        traceback.print_exc()
        life.fail(f"{type(error).__name__}: {error}")
        leave(1)
    leave(0)
    return 0


def _read_work(source: Any) -> bytes:
    (size,) = _LENGTH.unpack(source.read(_LENGTH.size))
    return bytes(source.read(size))


def _watch(source: Any, life: Life) -> None:
    source.read()  # returns when the launcher closes it or dies
    # No process may be left to kill this one: exit even while compiling or hanging in a simulator.
    faulthandler.dump_traceback_later(LAST_RESORT_S, exit=True)
    life.stop()


def leave(code: int) -> None:
    """Exit without waiting for threads inside a library (a compiler, a simulator), which cannot be stopped."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
