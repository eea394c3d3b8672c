"""A process of the run: how it is started, how it says that it is ready, how it is told to stop.

stdin    the factory of its work (cloudpickle), then nothing: when it closes, the process ends. So a launcher that was
         killed leaves nobody behind, and a SIGTERM that hits every process of the tree at once stops them in order
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
    """What a role's work is given: the wish to stop, and whom to tell that it is ready."""

    def __init__(self, ready_fd: int = -1) -> None:
        self._stop = threading.Event()
        self._ready_fd = ready_fd

    @property
    def is_over(self) -> bool:
        return self._stop.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until it is to stop; whether it is."""
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
        """Wait a little for those who may still need this process."""
        until = time.monotonic() + limit_s
        while not is_done() and time.monotonic() < until:
            time.sleep(0.05)  # only at the very end of a run


def write_work(pipe: Any, work: bytes) -> None:
    pipe.write(_LENGTH.pack(len(work)))
    pipe.write(work)
    pipe.flush()


def main() -> int:
    """python -m dreamer_worker.life READY_FD NAME: do the work that stands on stdin. The name is for `ps`."""
    logging.basicConfig(level=os.environ.get("DREAMER_LOG", "WARNING"), format="%(levelname)s %(name)s: %(message)s")
    # The launcher stops us in an order of its own; a signal to the whole tree would break it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    life = Life(int(sys.argv[1]))
    source = sys.stdin.buffer
    try:
        import cloudpickle

        work = cloudpickle.loads(_read_work(source))
        threading.Thread(target=_watch, args=(source, life), name="lifeline", daemon=True).start()
        work(life)
    except ConfigError as error:  # the user's to mend: frames of ours would bury the words
        life.fail(str(error))
        leave(1)
    except Exception as error:  # noqa: BLE001  # a process's edge
        traceback.print_exc()
        life.fail(f"{type(error).__name__}: {error}")
        leave(1)
    leave(0)
    return 0


def _read_work(source: Any) -> bytes:
    (size,) = _LENGTH.unpack(source.read(_LENGTH.size))
    return bytes(source.read(size))


def _watch(source: Any, life: Life) -> None:
    source.read()  # returns when the launcher closes it, or is gone
    # Nobody may be left to kill us: also who compiles, or hangs in a simulator, goes.
    faulthandler.dump_traceback_later(LAST_RESORT_S, exit=True)
    life.stop()


def leave(code: int) -> None:
    """End the process without waiting for threads inside a library (a compiler, a simulator) that nobody can stop."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
