"""The control page of a lane: its writer, its viewers, and where its frames are. Standard library only.

    /dev/shm/mosaic.fastlane.<run_id>                 the page, one per run, made when the env is made
    /dev/shm/mosaic.fastlane.<run_id>.<generation>    the frames (ring.py), made when someone watches
    /dev/shm/mosaic.fastlane.<run_id>.t<n>[.<gen>]    the same for tile n of a grid (grid.py)

The page is 4096 bytes of 8-byte words, each written with one store:

    word 0  magic        stored last when the page is created: without it the page is not ready
         1  lease        "watched until", CLOCK_MONOTONIC in ns; any reader stores it
         2  generation   of the current frames; 0: none yet
         3  width        ┐
         4  height       ├ of these frames
         5  channels     ┘
         6  state        OPEN, CLOSED (the writer is done), MOVED (open the name again)

The writer holds a flock on the page as long as it lives, because pids mean nothing across namespaces. Only the holder
of that lock removes anything: the writer, or a janitor after the writer's death.

The writer maps the page, because it checks the lease all the time. Readers use read and write: if another program
truncated a mapped page, they would die of SIGBUS, and one of them is MOSAIC's daemon.
"""

import contextlib
import errno
import fcntl
import mmap
import os
import re
import signal
import threading
import time
import weakref
from types import FrameType
from typing import List, Optional, Tuple, Union

FOLDER = "/dev/shm"
PREFIX = "mosaic.fastlane."
SIZE = 4096
_MAGIC = int.from_bytes(b"MOSAICL1", "little")
MAGIC, LEASE, GENERATION, WIDTH, HEIGHT, CHANNELS, STATE = range(7)
OPEN, CLOSED, MOVED = range(3)
# Larger values are garbage: no run has so many, and no reader asks for so long.
_MOST_GENERATIONS = 1 << 32
_LONGEST_LEASE_NS = 1 << 50  # thirteen days

_RUN_ID = re.compile(r"[A-Za-z0-9_-]+\Z")
_FRAMES = re.compile(r"(.+)\.[0-9]+\Z")


class FastLaneError(RuntimeError):
    """Frames cannot be shown on this machine. The text says why."""


def create_fastlane_name(run_id: str) -> str:
    """The name of the run's control page in /dev/shm."""
    # With a dot, one run's name could be mistaken for a part of another's.
    if not _RUN_ID.match(run_id):
        raise ValueError(f"{run_id!r} cannot name a FastLane. Use letters, digits, '-' and '_'.")
    return PREFIX + run_id


def tile_name(run_id: str, tile: int) -> str:
    """The name of the page of one tile of the run's grid."""
    return f"{create_fastlane_name(run_id)}.t{tile}"


def lane_name(run_id: str, lane: int) -> str:
    """The name of the page of one lane (0, 1 …) of an evaluation: its tiles start at 1, because 0 is the grid."""
    return tile_name(run_id, lane + 1)


def frames_name(lane: str, generation: int) -> str:
    return f"{lane}.{generation}"


def path_of(name: str) -> str:
    return os.path.join(FOLDER, name)


def refuse_other_machines() -> None:
    machine = os.uname().machine
    if machine not in ("x86_64", "AMD64"):
        raise FastLaneError(
            f"FastLane relies on the memory ordering of x86-64, but this machine is {machine}. Frames are unavailable."
        )


class ControlPage:
    """One mapped page. Its promises:

    1. A claimed page has one owner, in one process: a second claim is a FileExistsError, a forked child owns nothing.
    2. What the owner created is removed when it exits, also by SIGTERM. After kill -9 the next claim takes it over.
    """

    def __init__(self, lane: str, fd: int, owned: bool) -> None:
        self.lane = lane
        self._fd = fd
        self.words: Words = _map_words(fd) if owned else FileWords(fd)
        self._frames = (0, 0, 0, 0)  # generation, width, height, channels that the owner has published
        self._end: Optional["weakref.finalize[..., ControlPage]"] = None
        if owned:
            self._own()
        else:
            self._end = weakref.finalize(self, os.close, fd)

    @classmethod
    def claim(cls, lane: str) -> "ControlPage":
        """The page of `lane`, ours until unlink(); FileExistsError while another writer lives."""
        refuse_other_machines()
        page = cls(lane, _lock(lane), owned=True)
        # A dead writer's frames are removed; generations count on from its last, so that its readers see the change.
        _remove_frames(lane)
        before = page.words[GENERATION]
        page._frames = (before if before < _MOST_GENERATIONS else 0, 0, 0, 0)
        page._write(page.words[LEASE])
        _clean_up_on_sigterm()
        return page

    @classmethod
    def prepare(cls, lane: str, until_ns: int) -> None:
        """Create the page before its writer exists, watched until then; nothing happens if there is a writer.

        A writer that claims it keeps the lease, so that its very first frame is rendered.
        """
        try:
            page = cls.claim(lane)
        except FileExistsError:
            return
        page.renew_lease(until_ns)
        page.forget()

    @classmethod
    def open(cls, lane: str) -> "ControlPage":
        """The page of `lane` for a reader; FileNotFoundError when there is none."""
        refuse_other_machines()
        page = cls(lane, open_ours(lane, os.O_RDWR, SIZE), owned=False)
        if page.words[MAGIC] != _MAGIC:
            page.forget()
            raise FileNotFoundError(errno.ENOENT, "The FastLane is not ready yet", path_of(lane))
        return page

    def _own(self) -> None:
        self._end = weakref.finalize(self, _remove, self.lane, self._fd, os.getpid())
        _owned.add(self)

    @property
    def is_current(self) -> bool:
        """Whether the page's name still refers to it."""
        return _is_at(self._fd, path_of(self.lane))

    def renew_lease(self, until_ns: int) -> None:
        # Never shortened: another reader may have asked for longer.
        if self.words[LEASE] < until_ns:
            self.words[LEASE] = until_ns

    @property
    def generation(self) -> int:
        """The generation of the last frames that the owner has published."""
        return self._frames[0]

    def point_to(self, generation: int, shape: Tuple[int, int, int]) -> None:
        """Announce frames that are ready."""
        height, width, channels = shape
        self._frames = (generation, width, height, channels)
        self.words[HEIGHT], self.words[WIDTH], self.words[CHANNELS] = shape
        self.words[GENERATION] = generation

    def repair(self) -> bool:
        """Recreate the page if another program removed it (logind may, at logout) or damaged it; whether one did."""
        if self.is_current:
            if self._is_whole:
                return False
            os.posix_fallocate(self._fd, 0, SIZE)
            self._write(self.words[LEASE])
            return True
        fresh = _lock(self.lane)
        was_whole = os.fstat(self._fd).st_size >= SIZE
        old, old_fd, self.words, self._fd = self.words, self._fd, _map_words(fresh), fresh
        self._write(old[LEASE] if was_whole else 0)
        if was_whole:
            old[STATE] = MOVED
        if self._end:
            self._end.detach()
        self._own()
        os.close(old_fd)
        return True

    @property
    def _is_whole(self) -> bool:
        # The size first: reading a truncated page is SIGBUS.
        if os.fstat(self._fd).st_size < SIZE or self.words[MAGIC] != _MAGIC or self.words[STATE] != OPEN:
            return False
        return self.words[GENERATION] == self.generation

    def _write(self, lease: int) -> None:
        """Write every word of the page, the magic last."""
        words = self.words
        words[LEASE] = lease if lease < time.monotonic_ns() + _LONGEST_LEASE_NS else 0
        words[GENERATION], words[WIDTH], words[HEIGHT], words[CHANNELS] = self._frames
        words[STATE] = OPEN
        words[MAGIC] = _MAGIC

    def close(self) -> None:
        """Announce that no frame will follow. The name stays until unlink()."""
        self.words[STATE] = CLOSED
        self.words = _private_words()

    def unlink(self) -> None:
        """Remove all files of the lane in /dev/shm; FileNotFoundError if its page is gone."""
        ours = self._end is not None and self._end.detach() is not None
        if not ours:
            raise FileNotFoundError(errno.ENOENT, "This FastLane has already been removed", path_of(self.lane))
        was_there = self.is_current
        _remove(self.lane, self._fd, os.getpid())
        if not was_there:
            raise FileNotFoundError(errno.ENOENT, "Another program removed this FastLane", path_of(self.lane))

    def forget(self) -> None:
        """Release the page without changing it, as a reader does, and a forked child with its parent's page."""
        if self._end and self._end.detach() is None:
            return
        self.words = _private_words()
        os.close(self._fd)
        self._end = None


class FileWords:
    """The words of a page that is not mapped; words beyond its end are 0."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __getitem__(self, place: int) -> int:
        return int.from_bytes(os.pread(self._fd, 8, 8 * place), "little")

    def __setitem__(self, place: int, word: int) -> None:
        os.pwrite(self._fd, word.to_bytes(8, "little"), 8 * place)


Words = Union["memoryview[int]", FileWords]


def open_ours(name: str, flags: int, size: int) -> int:
    """A descriptor of a segment that can be trusted: created by this user, and at least `size` bytes long."""
    fd = os.open(path_of(name), flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    facts = os.fstat(fd)
    if facts.st_uid not in (os.geteuid(), 0) and os.geteuid() != 0:
        os.close(fd)
        raise PermissionError(errno.EACCES, "This FastLane belongs to another user", path_of(name))
    if facts.st_size < size:
        os.close(fd)
        raise FileNotFoundError(errno.ENOENT, "The FastLane is not ready yet", path_of(name))
    return fd


def remove_dead(run_id: Optional[str] = None) -> List[str]:
    """The janitor: remove the lanes, of one run or of all, whose writer is dead. Returns their names."""
    removed = []
    for lane in lanes(run_id):
        with contextlib.suppress(OSError):  # alive, or another user's, or not a lane
            # Nothing is allocated: /dev/shm may be full.
            fd = _lock(lane, size=0)
            _remove(lane, fd, os.getpid())
            removed.append(lane)
    return removed


def lanes(run_id: Optional[str] = None) -> List[str]:
    """Names of all lanes in /dev/shm, tiles included, whether or not their page is still there."""
    names = (name for name in os.listdir(FOLDER) if name.startswith(PREFIX))
    found = {match.group(1) if (match := _FRAMES.match(name)) else name for name in names}
    if run_id is not None:
        page = create_fastlane_name(run_id)
        found = {name for name in found if name == page or name.startswith(page + ".")}
    return sorted(found)


def run_of(lane: str) -> str:
    """The run of a lane: the reverse of create_fastlane_name, for tiles too."""
    return lane[len(PREFIX) :].partition(".")[0]


def _lock(lane: str, size: int = SIZE) -> int:
    """A descriptor of the page, created if necessary, that holds its lock."""
    path = path_of(lane)
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Without allocated blocks, the first store would be SIGBUS on a full /dev/shm.
            if size:
                os.posix_fallocate(fd, 0, size)
        except BlockingIOError:
            os.close(fd)
            raise FileExistsError(errno.EEXIST, "Another writer has this FastLane", path) from None
        except OSError:
            os.unlink(path)
            os.close(fd)
            raise
        # Its last owner may have removed it between open and flock.
        if _is_at(fd, path):
            return fd
        os.close(fd)


def _is_at(fd: int, path: str) -> bool:
    try:
        there, here = os.stat(path, follow_symlinks=False), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _map_words(fd: int) -> "memoryview[int]":
    return memoryview(mmap.mmap(fd, SIZE)).cast("Q")


def _private_words() -> "memoryview[int]":
    """Words of this process alone: a lane with them is never watched."""
    return memoryview(bytearray(SIZE)).cast("Q")


def _remove(lane: str, fd: int, owner_pid: int) -> None:
    """Remove a lane whose lock `fd` holds, the page last: as long as it exists, a janitor finds the rest."""
    if os.getpid() != owner_pid:
        return
    _remove_frames(lane)
    if _is_at(fd, path_of(lane)):
        os.unlink(path_of(lane))
    os.close(fd)


def _remove_frames(lane: str) -> None:
    for name in os.listdir(FOLDER):
        match = _FRAMES.match(name)
        if match and match.group(1) == lane:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path_of(name))


_owned: "weakref.WeakSet[ControlPage]" = weakref.WeakSet()


def _forget_all() -> None:
    # A child with the descriptor would keep the lock after its parent's death, and two would write one ring.
    for page in list(_owned):
        page.forget()


os.register_at_fork(after_in_child=_forget_all)


def _clean_up_on_sigterm() -> None:
    """SIGTERM ends a process without its exit handlers: clean up first, unless the script handles the signal."""
    in_main = threading.current_thread() is threading.main_thread()
    if in_main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _clean_up_and_die)


def _clean_up_and_die(number: int, frame: Optional[FrameType]) -> None:
    for page in list(_owned):
        with contextlib.suppress(OSError):
            page.unlink()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
