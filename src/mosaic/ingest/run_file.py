"""A run's telemetry file, open: what is kept in memory of it, what its errors mean, and how a lost one is replaced."""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from mosaic.ingest.damage import damaged, to_mosaic_error
from mosaic.ingest.file import connect, hold
from mosaic.ingest.held_files import HeldFiles, Loss, refuse_linked_folder, set_aside
from mosaic.ingest.memory import Memory
from mosaic.model import sqlite
from mosaic.model.errors import BadBatch, MosaicError, StoreDamaged, StoreFailed
from mosaic.wire import mosaic_pb2 as pb

log = logging.getLogger(__name__)

REBUILD_AGAIN_S = 10.0  # after a rebuild; doubled each time, …
LONGEST_PAUSE_S = 600.0  # … because a worker could damage its file in a loop

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="RunFile")


def on_file(method: "Callable[Concatenate[S, P], T]") -> "Callable[Concatenate[S, P], T]":
    """Open the file first; on any error roll back, and raise a MosaicError: the thread serves other runs too."""

    @wraps(method)
    def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            self._ensure_open()
            return method(self, *args, **kwargs)
        except MosaicError:
            raise
        except OverflowError as error:
            self._roll_back()
            raise BadBatch(self.run_id, f"a number is too large ({error})") from error
        except Exception as error:  # the edge of one run: a damaged file can raise anything
            self._roll_back()
            ours = to_mosaic_error(error, self.path)
            if type(ours) is StoreFailed:
                log.exception("An unexpected error.", extra={"run_id": self.run_id})
            raise ours from error

    return wrapper


def on_own_file(method: "Callable[Concatenate[S, P], T]") -> "Callable[Concatenate[S, P], T]":
    """Like on_file, for writing: a damaged file is set aside, and the method gets a new one."""
    attempt = on_file(method)

    @wraps(method)
    def wrapper(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return attempt(self, *args, **kwargs)
        except StoreDamaged as error:
            if self.read_only:
                raise
            self._start_over(error)
            return attempt(self, *args, **kwargs)

    return wrapper


class RunFile:
    """Opened when it is needed. A writable one that was lost is replaced: see RunStore."""

    def __init__(self, path: Path, run_id: str, read_only: bool, is_evaluation: bool) -> None:
        self.path = path
        self.run_id = run_id
        self.read_only = read_only
        self._is_evaluation = is_evaluation
        self._db: sqlite3.Connection | None = None
        self._loaded: Memory | None = None
        self._held: HeldFiles | None = None
        self._durable = {pb.STDOUT: 0, pb.STDERR: 0}
        self._acknowledged = {pb.STDOUT: 0, pb.STDERR: 0}
        self._news = ""  # what happened to the file, to be noted in the next one
        self._pause_s = 0.0
        self._no_rebuild_before = 0.0

    @property
    def _open_db(self) -> sqlite3.Connection:
        assert self._db is not None
        return self._db

    @property
    def _memory(self) -> Memory:
        assert self._loaded is not None
        return self._loaded

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Committed at the end; on_file rolls it back if something in it fails."""
        db = self._open_db
        db.execute("BEGIN IMMEDIATE")
        yield db
        db.execute("COMMIT")

    def _ensure_open(self) -> None:
        if self._held and (loss := self._held.loss()):
            self._recover(loss)
        try:
            self._open()
        except StoreDamaged as error:
            if self.read_only:
                raise
            self._start_over(error)
            self._open()

    def _open(self) -> None:
        if self._db is not None and self._loaded is not None:
            return
        try:
            self._connect()
            self._loaded = Memory(self._open_db, self.run_id, self._is_evaluation)
            if not self.read_only:
                self._label(self._open_db, self._loaded)
        except (MosaicError, OSError):
            raise
        except sqlite3.Error as error:
            raise to_mosaic_error(error, self.path) from error
        except Exception as error:  # what a damaged file contains can be anything
            raise damaged(self.path, error) from error
        if self._held:
            self._held.loss()  # remembers the -wal

    def _connect(self) -> None:
        if self._db is None:
            held = None if self.read_only else hold(self.path)
            self._db, self._held = connect(self.path, self.read_only), held

    def _label(self, db: sqlite3.Connection, memory: Memory) -> None:
        if not memory.is_labelled:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('run_id', ?)", (self.run_id.encode(),))
        if self._news:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('rebuilt', ?)", (self._news.encode(),))
            memory.rebuilt, self._news = self._news, ""

    # -- a lost file

    def _recover(self, loss: Loss) -> None:
        refuse_linked_folder(self.path)
        log.warning("%s %s while it was open.", self.path, loss.value, extra={"run_id": self.run_id})
        try:
            if loss is Loss.CUT:
                raise damaged(self.path, loss.value)
            self._restore()
        except StoreDamaged as error:
            self._start_over(error)

    def _restore(self) -> None:
        """Write the content of the open file, which has no name any more, to a new one."""
        known = self._loaded.next if self._loaded else None
        if self._held and not self._held.has_name:
            set_aside(self.path)
        try:
            sqlite.back_up(self._open_db, self.path)
        except sqlite3.Error as error:
            raise to_mosaic_error(error, self.path) from error
        self._shut()
        self._news = f"{self.path.name} {Loss.MOVED.value} while the run was live and was restored"
        self._open()
        if known and self._memory.next != known:
            raise damaged(self.path, "the restored file is not the same")

    def _start_over(self, why: StoreDamaged) -> None:
        """Set the file aside and continue with an empty one, whose offsets tell the tailer to send everything again."""
        now = time.monotonic()
        if now < self._no_rebuild_before:
            raise StoreDamaged(f"{why} It was rebuilt before; MOSAIC rebuilds it again later.") from why
        self._pause_s = min(LONGEST_PAUSE_S, self._pause_s * 2 or REBUILD_AGAIN_S)
        self._no_rebuild_before = now + self._pause_s
        log.warning("%s It is set aside and rebuilt from the spool.", why, extra={"run_id": self.run_id})
        self._shut()
        set_aside(self.path)
        self._durable = {pb.STDOUT: 0, pb.STDERR: 0}
        self._news = f"{self.path.name} was damaged and was rebuilt from the output of the run"

    def _roll_back(self) -> None:
        self._loaded = None  # it may be ahead of the rows that are rolled back
        try:
            if self._db and self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.Error:
            self._shut()

    def _shut(self) -> None:
        db, self._db, self._loaded, self._held = self._db, None, None, None
        if db is not None:
            db.close()
