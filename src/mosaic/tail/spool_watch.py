"""Wakes the tailer (inotify) when the spool has grown or exit.json has appeared. A silent worker costs no CPU."""

import logging
import os
import select
import time
from collections.abc import Iterable

from inotify_simple import INotify, flags

from mosaic.model.rundir import RunDir

LINGER_S = 0.003  # after the first new byte: lines that belong together are sent together
BUSY_LINGER_S = 0.012  # while the output is dense: one request costs more CPU than a hundred events in it
BUSY_WITHIN_S = 0.05
POLL_S = 0.2  # without inotify

log = logging.getLogger(__name__)


class SpoolWatch:
    """Created before the first read, so that no byte can arrive unnoticed between reading and waiting."""

    def __init__(self, run: RunDir, spools: "Iterable[str | os.PathLike[str]]") -> None:
        self._inotify: INotify | None = None
        self._woken_at = 0.0
        try:
            self._inotify = self._watch(run, spools)
        except OSError as error:
            # A machine may allow few inotify instances (128 per user); a run must not stop for that.
            log.warning("inotify is unavailable (%s); polling every %g s instead", error, POLL_S)

    def wait(self, limit_s: float | None = None) -> bool:
        """Return when something may have changed; False when nothing has for `limit_s`."""
        if self._inotify is None:
            time.sleep(POLL_S)
            return True
        if not self._poll.poll(None if limit_s is None else limit_s * 1000):
            return False
        self.linger()
        self._inotify.read(timeout=0)
        return True

    def linger(self) -> None:
        is_busy = time.monotonic() - self._woken_at < BUSY_WITHIN_S
        time.sleep(BUSY_LINGER_S if is_busy else LINGER_S)
        self._woken_at = time.monotonic()

    def _watch(self, run: RunDir, spools: "Iterable[str | os.PathLike[str]]") -> INotify:
        inotify = INotify()
        for spool in spools:
            inotify.add_watch(spool, flags.MODIFY)
        for folder in (run.control, run.path):  # one and the same for a run of an older version
            inotify.add_watch(folder, flags.MOVED_TO | flags.DELETE_SELF | flags.MOVE_SELF)
        self._poll = select.poll()
        self._poll.register(inotify.fileno(), select.POLLIN)
        return inotify
