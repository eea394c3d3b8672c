"""Wakes the tailer: the spool grew, or exit.json came. Nothing runs while a worker is silent."""

import logging
import select
import time

from inotify_simple import INotify, flags

from mosaic.model.rundir import RunDir

LINGER_S = 0.003  # after the first new byte: a few lines that belong together go together
BUSY_LINGER_S = 0.012  # while line follows line: a request costs more CPU than a hundred events in it
BUSY_WITHIN_S = 0.05
LOOK_S = 0.2

log = logging.getLogger(__name__)


class Bell:
    """Made before the first read, so that no byte falls between reading and waiting."""

    def __init__(self, run: RunDir) -> None:
        self._inotify: INotify | None = None
        self._rang_at = 0.0
        try:
            self._inotify = self._watch(run)
        except OSError as error:
            # A machine may give out few inotify instances (128 per user); a run must not stop for that.
            log.warning("inotify is not to be had (%s); looking five times a second", error)

    def wait(self, limit_s: float | None = None) -> bool:
        """Return when something may have changed; False when nothing has for `limit_s`."""
        if self._inotify is None:
            time.sleep(LOOK_S)
            return True
        if not self._poll.poll(None if limit_s is None else limit_s * 1000):
            return False
        self.linger()
        self._inotify.read(timeout=0)
        return True

    def linger(self) -> None:
        is_busy = time.monotonic() - self._rang_at < BUSY_WITHIN_S
        time.sleep(BUSY_LINGER_S if is_busy else LINGER_S)
        self._rang_at = time.monotonic()

    def _watch(self, run: RunDir) -> INotify:
        inotify = INotify()
        inotify.add_watch(run.stdout, flags.MODIFY)
        inotify.add_watch(run.stderr, flags.MODIFY)
        inotify.add_watch(run.path, flags.MOVED_TO | flags.DELETE_SELF)
        self._poll = select.poll()
        self._poll.register(inotify.fileno(), select.POLLIN)
        return inotify
