"""owner.lock: whose run folder it is. A held lock means a living holder."""

import fcntl
import os

from mosaic.hold.launch import Launch, read_launch
from mosaic.model import durable
from mosaic.model.failpoints import failpoint
from mosaic.model.rundir import RunDir


class Leave(Exception):
    """This holder is late or the second one: somebody else has the run, or had it."""


def take(run_dir: RunDir, attempt: int) -> Launch:
    """The launch that this holder owns from now on until it dies, or Leave."""
    failpoint("lock.open")
    _lock(str(run_dir.owner_lock))
    failpoint("lock.taken")
    launch = read_launch(durable.read_json(run_dir.launch))
    if launch.attempt != attempt:
        raise Leave(f"launch.json is for attempt {launch.attempt}, this is attempt {attempt}")
    # A worker is never started twice: once started.json is there, the attempt has had its worker.
    for path in (run_dir.started, run_dir.exit):
        value = durable.read_json(path)
        if value and value.get("attempt") == attempt:
            raise Leave(f"attempt {attempt} has its {path.name} already")
    return launch


def _lock(path: str) -> None:
    # The descriptor is never closed: it lives as long as this process.
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise Leave("another process holds owner.lock") from None
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
