"""Brings the files of a run home from a node that shares no file system with the daemon.

While the run is live a thread sends checkpoints that have not changed for a while, so that a lost node loses little;
at the end everything is sent that the worker has written into its folder. A file is sent in pieces, each with the hash
of the whole: after a break the daemon says where to continue.
"""

import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

from mosaic.model import durable
from mosaic.model.rundir import RunDir
from mosaic.tail.publish import CursorLost, Publisher, Refused, RunGone
from mosaic.wire import mosaic_pb2 as pb

PIECE_BYTES = 1 << 20
LOOK_S = 10.0
SETTLED_S = 5.0  # a file that changed later may be just being written
MOST_FILES = 20_000
LARGEST_LOG = 64 << 20  # of a longer one the beginning is freed already; its lines are in the store
_NOT_SENT = frozenset({"config", "operators"})
_LOGS = "logs"

log = logging.getLogger(__name__)


class Version(NamedTuple):
    """What tells two versions of a file apart without reading them."""

    size: int
    mtime_ns: int
    inode: int


class FilesHome:
    def __init__(self, run: RunDir, publisher: Publisher) -> None:
        self._run = run
        self._publisher = publisher  # its own, because it is used in another thread
        self._sent: dict[str, Version] = {}
        self._refused: dict[str, str] = {}
        self._is_registered = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Send checkpoints from now on, in the background."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_again, name="files", daemon=True)
            self._thread.start()

    def finish(self) -> str:
        """Send everything. Returns which files stay here and why; empty if there are none."""
        self._stop.set()
        if self._thread:
            self._thread.join()
        found = list(self._all_files())
        for path in found[:MOST_FILES]:
            self._insist(path)
        self._publisher.close()
        if len(found) > MOST_FILES:
            self._refused["…"] = f"{len(found) - MOST_FILES} more than the {MOST_FILES} that are sent"
        return "; ".join(f"{path}: {why}" for path, why in list(self._refused.items())[:3])

    def _look_again(self) -> None:
        while not self._stop.wait(LOOK_S):
            try:
                for path in self._settled_checkpoints():
                    self._send(path)
            except (CursorLost, OSError) as error:
                log.info("Files are sent later: %s", error)
            except RunGone as why:
                log.info("No files are sent: %s", why)
                return

    def _settled_checkpoints(self) -> Iterator[str]:
        for path in self._below("checkpoints"):
            if self._stop.is_set():
                return
            version = self._version(path)
            if version and time.time() - version.mtime_ns / 1e9 > SETTLED_S:
                yield path

    def _all_files(self) -> Iterator[str]:
        yield from (path for path in self._below("") if path.split("/")[0] not in (*_NOT_SENT, _LOGS))
        for path in self._below(_LOGS):
            version = self._version(path)
            if version and version.size <= LARGEST_LOG:
                yield path

    def _below(self, name: str) -> Iterator[str]:
        """Regular files, by their paths in the run's folder; no link is followed."""
        top = os.path.join(self._run.path, name) if name else str(self._run.path)
        for folder, folders, names in os.walk(top):
            folders.sort()
            for file in sorted(names):
                path = os.path.relpath(os.path.join(folder, file), self._run.path)
                shown = os.fsencode(path).decode(errors="replace")
                if path == shown:
                    yield path
                else:
                    self._refused[shown] = "its name is not UTF-8"

    def _insist(self, path: str) -> None:
        while True:
            try:
                self._send(path)
                return
            except CursorLost:
                self._is_registered = False  # the daemon was restarted; it has what it acknowledged
            except OSError as error:
                self._refused[path] = str(error.strerror or error)
                return

    def _send(self, path: str) -> None:
        version = self._version(path)
        if version is None or self._sent.get(path) == version:
            return
        if not self._is_registered:
            self._publisher.register()
            self._is_registered = True
        try:
            self._send_pieces(path)
        except Refused as why:
            self._refused[path] = str(why)
            log.warning("%s stays here: %s", path, why)
        self._sent[path] = version

    def _send_pieces(self, path: str) -> None:
        fd = durable.open_regular(self._run.path / path, below=self._run.path)
        try:
            size, digest = os.fstat(fd).st_size, _sha256(fd)
            offset = self._put(path, size, digest)
            while offset < size:
                data = os.pread(fd, PIECE_BYTES, offset)
                reached = self._put(path, size, digest, offset, data)
                if reached <= offset:
                    raise OSError(f"{path} changed while it was sent")
                offset = reached
        finally:
            os.close(fd)

    def _put(self, path: str, size: int, digest: bytes, offset: int = 0, data: bytes = b"") -> int:
        return self._publisher.put_file(
            pb.PutFileRequest(path=path, size=size, sha256=digest, offset=offset, data=data)
        )

    def _version(self, path: str) -> "Version | None":
        try:
            found = os.stat(self._run.path / path, follow_symlinks=False)
        except OSError:
            return None
        is_plain = stat.S_ISREG(found.st_mode)
        return Version(found.st_size, found.st_mtime_ns, found.st_ino) if is_plain else None


def _sha256(fd: int) -> bytes:
    digest, offset = hashlib.sha256(), 0
    while data := os.pread(fd, PIECE_BYTES, offset):
        digest.update(data)
        offset += len(data)
    return digest.digest()
