"""Files that a node sends home: checkpoints and whatever else its worker has written into its folder.

    control/{run_id}/incoming/<hash of the path>-<hash of the content>.part   what has arrived so far
    {run_id}/checkpoints/…                                                    the whole file, after its hash was checked

A file appears under its name whole or not at all. After a break the sender asks how much of it is there.
"""

import asyncio
import errno
import hashlib
import os
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mosaic.dispatch.live_runs import LiveRuns
from mosaic.model import durable
from mosaic.model.end_proof import own_launch
from mosaic.model.errors import BadConfig, NotAllowed, StoreUnavailable
from mosaic.model.failpoints import failpoint
from mosaic.model.rundir import RunDir, is_folder
from mosaic.wire import mosaic_pb2 as pb

THREADS = 4
STILL_ARRIVING_S = 5.0  # between two notes that a large file is being stored
LONGEST_PATH = 512
DEEPEST = 16
LARGEST_FILE = 1 << 40
LARGEST_PIECE = 8 << 20
MOST_PARTS = 64
SPARE_BYTES = 1 << 30  # of the disk, for the registry and the telemetry of all runs
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO)
# The daemon's own: a run may not replace them by what its node has.
_OURS = re.compile(r"telemetry\.sqlite.*|provenance\.json|operators\.json|operators|config", re.DOTALL)


class IncomingFiles:
    """Used only on the daemon's loop, which never waits for a disk.

    The last piece of a large file takes as long as reading all of it. So the threads are its own, and each run has at
    most one of them: whatever one run sends, the others and the rest of the daemon have theirs.
    """

    def __init__(self, runs: LiveRuns) -> None:
        self._runs = runs
        self._threads = ThreadPoolExecutor(THREADS, "incoming")
        self._busy: set[str] = set()
        self._refused: set[str] = set()  # runs for whose files there was no room
        self._is_closed = threading.Event()

    async def put(self, rundir: RunDir, request: pb.PutFileRequest) -> int:
        """Keep a piece of a file, and the file when it is complete. Returns how much of it is there."""
        if request.run_id in self._busy:
            raise StoreUnavailable(f"Another piece of a file of run {request.run_id} is still being stored.")
        self._busy.add(request.run_id)
        work = self._threads.submit(put_file, rundir, request, self._is_closed)
        work.add_done_callback(lambda _: self._busy.discard(request.run_id))  # also after its caller has left
        stored = asyncio.wrap_future(work)
        while not (await asyncio.wait([stored], timeout=STILL_ARRIVING_S))[0]:
            self._runs.arriving(request.run_id)
        try:
            reached = stored.result()
        except StoreUnavailable as error:
            # It is not arriving: a node asks again and again for room on a full disk, and its run ends all the same.
            self._note_problem(request.run_id, str(error))
            raise
        self._note_problem(request.run_id, "")
        # Neither a question nor a piece again: a run whose files never arrive ends all the same.
        if request.data and reached > request.offset:
            self._runs.arriving(request.run_id)
        return reached

    def close(self) -> None:
        """End what is under way: the next daemon continues where this one is."""
        self._is_closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _note_problem(self, run_id: str, problem: str) -> None:
        """Listings show it, and a cancel does not wait for room."""
        if problem or run_id in self._refused:
            self._runs.storage_problem(run_id, problem)
        (self._refused.add if problem else self._refused.discard)(run_id)


def put_file(rundir: RunDir, request: pb.PutFileRequest, is_closed: threading.Event | None = None) -> int:
    if not own_launch(rundir).get("home"):
        raise NotAllowed(f"Run {request.run_id} has its folder on this machine.")
    parts = _checked(request)
    try:
        return _put(rundir, parts, request, is_closed or threading.Event())
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise StoreUnavailable(f"{request.path} cannot be stored now: {error.strerror}.") from error
        raise BadConfig("path", f"{request.path} cannot be stored: {error.strerror}.") from error


def _checked(request: pb.PutFileRequest) -> list[str]:
    """The parts of its path, if it stays in the run's folder."""
    parts = request.path.split("/")
    if not parts[0] or len(request.path.encode()) > LONGEST_PATH or len(parts) > DEEPEST:
        raise BadConfig("path", f"must have at most {LONGEST_PATH} bytes and {DEEPEST} parts.")
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or _OURS.fullmatch(parts[0]):
        raise BadConfig("path", f"'{request.path}' is not a file that a node may send.")
    if len(request.sha256) != hashlib.sha256().digest_size or request.size > LARGEST_FILE:
        raise BadConfig("size", "a file needs its SHA-256 and has at most 1 TiB.")
    if len(request.data) > LARGEST_PIECE or request.offset + len(request.data) > request.size:
        raise BadConfig("data", "is longer than a piece may be, or leads beyond the end of the file.")
    return parts


def _put(rundir: RunDir, parts: list[str], request: pb.PutFileRequest, is_closed: threading.Event) -> int:
    if _is_there(rundir, parts, request, is_closed):
        return int(request.size)
    part = _part_of(rundir, request)
    fd = durable.open_regular(part, os.O_RDWR | os.O_CREAT)
    try:
        there = os.fstat(fd).st_size
        if there > request.size:
            os.unlink(part)  # not what this daemon wrote; reading it might take hours
            return 0
        if request.offset == there and (request.data or not request.size):
            _keep_room(rundir, request.size - there)
            there += _write(fd, request.data, there)
        if there < request.size:
            return there
        os.fsync(fd)
        failpoint("far.whole")
        if _sha256(fd, is_closed) != request.sha256:
            os.unlink(part)  # the file changed while it was read: the sender starts again with its new hash
            return 0
    finally:
        os.close(fd)
    durable.move_below(part, rundir.path, parts)
    return int(request.size)


def _write(fd: int, data: bytes, offset: int) -> int:
    written = 0
    while written < len(data):
        written += os.pwrite(fd, data[written:], offset + written)
    return written


def _keep_room(rundir: RunDir, more: int) -> None:
    if shutil.disk_usage(rundir.control).free - more < SPARE_BYTES:
        raise StoreUnavailable(f"The disk has no room for {more:,} more bytes of run {rundir.run_id}. Free some.")


def _part_of(rundir: RunDir, request: pb.PutFileRequest) -> Path:
    """Where this version is collected. Other versions of it are given up."""
    folder = rundir.incoming
    folder.mkdir(mode=0o700, exist_ok=True)
    if not is_folder(folder):
        raise OSError(errno.ELOOP, "its folder is a link")
    name = hashlib.sha256(request.path.encode()).hexdigest()[:24]
    part = folder / f"{name}-{request.sha256.hex()}.part"
    others = [path for path in folder.iterdir() if path.name != part.name]
    for path in others if len(others) >= MOST_PARTS else (path for path in others if path.name.startswith(name)):
        path.unlink(missing_ok=True)
    return part


def _is_there(rundir: RunDir, parts: list[str], request: pb.PutFileRequest, is_closed: threading.Event) -> bool:
    """Whether the run's folder has this very version: the answer to the last piece may have been lost."""
    if request.data:
        return False
    try:
        fd = durable.open_regular(rundir.path.joinpath(*parts), below=rundir.path)
    except OSError:
        return False
    try:
        return os.fstat(fd).st_size == request.size and _sha256(fd, is_closed) == request.sha256
    finally:
        os.close(fd)


def _sha256(fd: int, is_closed: threading.Event) -> bytes:
    digest, offset = hashlib.sha256(), 0
    while data := os.pread(fd, 1 << 20, offset):
        if is_closed.is_set():
            raise StoreUnavailable("The daemon is stopping.")  # a stop must not wait for a terabyte
        digest.update(data)
        offset += len(data)
    return digest.digest()
