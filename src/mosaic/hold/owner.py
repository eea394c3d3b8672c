"""owner.lock: which holder owns the run folder. A held lock means a live holder."""

import fcntl
import os

from mosaic.hold.launch import Launch, read_launch
from mosaic.model import durable
from mosaic.model.failpoints import failpoint
from mosaic.model.rundir import RunDir


class NotOwner(Exception):
    """This holder is late, or a second one: another holder owns the run, or has owned it."""


def take(run_dir: RunDir, attempt: int) -> Launch:
    """Return the launch that this holder owns until it dies, or raise NotOwner."""
    failpoint("lock.open")
    _lock(str(run_dir.owner_lock))
    failpoint("lock.taken")
    launch = read_launch(durable.read_json(run_dir.launch))
    if launch.attempt != attempt:
        raise NotOwner(f"launch.json is for attempt {launch.attempt}, this is attempt {attempt}")
    # A worker is never started twice: once started.json exists, the attempt has had its worker.
    for path in (run_dir.started, run_dir.exit):
        value = durable.read_json(path)
        if value and value.get("attempt") == attempt:
            raise NotOwner(f"attempt {attempt} already has its {path.name}")
    return launch


def _lock(path: str) -> None:
    # The descriptor is never closed: it stays open as long as this process lives.
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise NotOwner("another process holds owner.lock") from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
