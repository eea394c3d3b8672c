"""The replay process: steps come in from the actor, sequences go out to the learner.

insert         steps of training envs, under the limiter      sample          sequences for training, also under it
insert_eval    steps of evaluation envs                       sample_report   and sample_eval, for reports
update         latents and priorities from the learner        prepare, snapshot, write: its part of a checkpoint
begin          which launch of the run the agent belongs to
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from mosaic_sdk.files import read_json, write_json

from dreamer_worker.buffer import Buffer, Rows
from dreamer_worker.checkpoint import Epochs, read_arrays, write_arrays
from dreamer_worker.config import DreamerConfig
from dreamer_worker.life import Life
from dreamer_worker.limiter import Closed, SamplesPerInsert
from dreamer_worker.rpc import LEAVING_S, Client, Disconnected, Reply, Server
from dreamer_worker.streams import METHODS, REPORTS, Stream
from dreamer_worker.timers import Timers, usage

log = logging.getLogger(__name__)

PART = "replay.json"


MakeBuffer = Callable[[Mapping[str, tuple[str, tuple[int, ...]]]], Buffer]


class Replay:
    """Both buffers and the limiter, saved together; does not depend on processes.

    A buffer is created with its first steps, which define what a step consists of.
    """

    def __init__(self, make_buffer: MakeBuffer, limiter: SamplesPerInsert) -> None:
        self.buffers: dict[str, Buffer] = {}
        self.limiter = limiter
        self._make_buffer = make_buffer
        self._lock = threading.Lock()
        limiter.is_ready = lambda: "train" in self.buffers and len(self.buffers["train"]) > 0

    def insert(self, rows: Rows, streams: list[str], seqs: np.ndarray) -> int:
        """Add steps of training envs when the limiter admits them; returns how many were new."""
        self.limiter.insert(0)  # wait first, count later: duplicates do not count
        added = self._buffer("train", rows).insert(rows, streams, seqs)
        self.limiter.note_inserts(added)
        return added

    def insert_eval(self, rows: Rows, streams: list[str], seqs: np.ndarray) -> int:
        return self._buffer("eval", rows).insert(rows, streams, seqs)

    def sample(self, count: int, first: Mapping[str, int] | None = None) -> Rows:
        """Sequences for an update. `first`: keys of which only the first steps are needed, and how many."""
        self.limiter.sample(count)
        batch = self.buffers["train"].sample(count, online=True, first=first)
        assert batch is not None, "the limiter let a sample through to an empty buffer"
        return batch

    def report(self, count: int, length: int, name: str = "train") -> Rows | None:
        """Sequences to report on, or None while there are none."""
        return self.buffers[name].sample(count, length) if name in self.buffers else None

    def update(self, ids: np.ndarray, values: Rows, starts: np.ndarray, priority: np.ndarray | None) -> None:
        if "train" in self.buffers:
            self.buffers["train"].update(ids, values, starts, priority)

    def stats(self) -> dict[str, float]:
        stats = {f"limiter/{name}": value for name, value in self.limiter.stats().items()}
        for name, buffer in list(self.buffers.items()):
            stats |= {f"{name}/{key}": value for key, value in buffer.stats().items()}
        return stats

    def snapshot(self) -> dict[str, Any]:
        buffers = {name: buffer.snapshot() for name, buffer in list(self.buffers.items())}
        return {"limiter": self.limiter.save(), "buffers": buffers}

    def restore(self, name: str, snapshot: Mapping[str, Any], blocks: Mapping[int, Rows]) -> None:
        buffer = self._make_buffer({key: (dtype, tuple(shape)) for key, (dtype, shape) in snapshot["spaces"].items()})
        buffer.restore(snapshot, blocks)
        self.buffers[name] = buffer

    def _buffer(self, name: str, rows: Rows) -> Buffer:
        with self._lock:
            if name not in self.buffers:
                self.buffers[name] = self._make_buffer(
                    {key: (row.dtype.str, row.shape[1:]) for key, row in rows.items()}
                )
            return self.buffers[name]


class Vault:
    """The replay's steps on disk. A block is written once for each length that it had at a checkpoint."""

    def __init__(self, epochs: Epochs) -> None:
        self.epochs = epochs
        self.folder = epochs.folder / "blocks"
        self._written: dict[tuple[str, int, int], dict[str, Any]] = {}

    def newest(self) -> int | None:
        """The newest complete epoch, if there is one."""
        return self.epochs.newest()

    def write(self, replay: Replay, snapshot: dict[str, Any], epoch: int) -> None:
        """Write the blocks of a snapshot that are not on disk yet, then the part that lists all of them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.epochs.path(epoch).mkdir(parents=True, exist_ok=True)
        for name, buffer in snapshot["buffers"].items():
            buffer["blocks"] = [
                entry | file
                for entry in buffer["blocks"]
                if (file := self._store(name, replay.buffers[name], entry)) is not None
            ]
        write_json(self.epochs.path(epoch) / PART, {"version": 1, "epoch": epoch, **snapshot})

    def restore(self, replay: Replay, epoch: int) -> None:
        saved = read_json(self.epochs.path(epoch) / PART)
        for name, buffer in saved["buffers"].items():
            blocks = {entry["ordinal"]: read_arrays(self.folder / entry["file"]) for entry in buffer["blocks"]}
            replay.restore(name, buffer, blocks)
            for entry in buffer["blocks"]:
                file = {key: entry[key] for key in ("file", "bytes")}
                self._written[name, entry["ordinal"], entry["rows"]] = file
        replay.limiter.load(saved["limiter"])

    def sweep(self, newest: int) -> None:
        """Remove the files that no epoch lists; `newest` is the newest epoch whose part is written."""
        named = set()
        for epoch in {*self.epochs.committed(), newest}:
            with contextlib.suppress(OSError, ValueError):
                buffers = read_json(self.epochs.path(epoch) / PART)["buffers"].values()
                named |= {entry["file"] for buffer in buffers for entry in buffer["blocks"]}
        for path in self.folder.iterdir():  # including what a killed replay left half written
            if path.name not in named:
                path.unlink(missing_ok=True)
        self._written = {key: file for key, file in self._written.items() if file["file"] in named}

    def _store(self, name: str, buffer: Buffer, entry: Mapping[str, int]) -> dict[str, Any] | None:
        key = (name, entry["ordinal"], entry["rows"])
        if key not in self._written:
            rows = buffer.block(entry["ordinal"], entry["rows"])
            if rows is None:
                return None  # overwritten by newer steps meanwhile
            path = self.folder / f"{name}-{entry['ordinal']:09d}-{entry['rows']}.npz"
            write_arrays(path, rows)
            self._written[key] = {"file": path.name, "bytes": path.stat().st_size}
        return self._written[key]


class ReplayService:
    """The replay behind an address."""

    def __init__(
        self,
        replay: Replay,
        streams: Mapping[str, Stream],
        server: Server,
        vault: Vault,
        on_outdated: Callable[[], None] = lambda: None,
    ) -> None:
        self.replay = replay
        self.server = server
        self.vault = vault
        self.timers = Timers()
        self._lock = threading.Lock()
        self.is_outdated = False
        self._on_outdated = on_outdated
        self._launch: int | None = None
        self._initial = replay.limiter.save()
        self._snapshots: dict[int, dict[str, Any]] = {}
        self._opened: contextlib.ExitStack = contextlib.ExitStack()
        for name in ("insert", "insert_eval", "update"):
            server.bind(name, self.timers.timed(name, _while_open(getattr(replay, name))))
        self._bind_streams(streams)
        server.bind_deferred("begin", self.begin)
        # In the connection's thread: handled in the order in which the agent sends them.
        for name in ("prepare", "release", "snapshot"):
            server.bind(name, getattr(self, name), threads=0)
        server.bind("write", self.write)

    def _bind_streams(self, streams: Mapping[str, Stream]) -> None:
        train = _while_open(lambda count, first: streams["train"](int(count), first))
        self.server.bind(METHODS["train"], self.timers.timed("sample", train))
        for name in REPORTS:
            self.server.bind(METHODS[name], partial(_draw_report, streams[name]))

    def restore(self) -> int | None:
        """Restore the newest complete epoch, if there is one."""
        epoch = self.vault.newest()
        if epoch is not None and (self.vault.epochs.path(epoch) / PART).exists():
            self.vault.restore(self.replay, epoch)
            self._initial = self.replay.limiter.save()
        return epoch

    def begin(self, reply: Reply, launch: Any) -> None:
        """Exit without an answer when another launch asks: it went back to its checkpoint, so the replay must too.

        The agent then asks the replay that is started in its place. A replay that was restarted during a launch does
        not know which launch that was, but it has been used since.
        """
        if self._launch is None and self.replay.limiter.save() == self._initial:
            self._launch = int(launch)
        if self._launch == int(launch):
            self.release()  # an agent killed during a checkpoint may have left the limiter open
            reply()
        else:
            self.is_outdated = True
            self._on_outdated()

    def prepare(self) -> None:
        """A checkpoint is coming: admit all waiting inserts, so that none is pending when it is taken."""
        with self._lock:
            self._opened.close()
            self._opened.enter_context(self.replay.limiter.open_to_inserts())

    def release(self) -> None:
        """The checkpoint was given up."""
        with self._lock:
            self._opened.close()

    def snapshot(self, epoch: int) -> None:
        with self._lock:
            self._snapshots = {int(epoch): self.replay.snapshot()}
            self._opened.close()

    def write(self, epoch: int) -> None:
        with self._lock:
            snapshot = self._snapshots.pop(int(epoch), None)
        if snapshot is None:
            raise ValueError(f"no snapshot of epoch {int(epoch)} was taken; the replay was restarted since")
        self.vault.write(self.replay, snapshot, int(epoch))
        self.vault.sweep(int(epoch))

    def stats(self) -> dict[str, float]:
        rpc = {f"rpc/{name}": value for name, value in self.server.stats().items()}
        return {**self.replay.stats(), **rpc, **self.timers.stats(), **usage()}


def _while_open(work: Callable[..., Any]) -> Callable[..., Any]:
    """A caller that waits for the limiter when the run ends gets Disconnected."""

    def run(*args: Any) -> Any:
        try:
            return work(*args)
        except Closed:
            raise Disconnected("the replay is closing") from None

    return run


def _draw_report(stream: Stream, count: Any, length: Any) -> Rows | None:
    batch: Rows | None = stream(int(count), int(length))
    return batch


def run_replay(
    life: Life,
    make_replay: Callable[[], Replay],
    make_stream: Callable[[Replay, str], Stream],
    make_vault: Callable[[], Vault],
    config: DreamerConfig,
) -> None:
    """The work of a replay process."""
    server = Server(config.replay_addr, config.secret, "replay", LEAVING_S)
    replay = make_replay()
    streams = {name: make_stream(replay, name) for name in METHODS}
    service = ReplayService(replay, streams, server, make_vault(), on_outdated=life.stop)
    epoch = service.restore()
    if epoch is not None:
        log.info("the replay continues from epoch %d", epoch)
    server.start()
    logger = Client(config.logger_addr, config.secret, max_inflight=2)
    life.ready()
    while not life.wait(config.log_every_s):
        if logger.wait_connected(0):
            logger.call("metrics", "replay", service.stats())
    life.linger(lambda: service.is_outdated or server.peers == 0)  # the agent's last checkpoint needs this process
    service.replay.limiter.close()
    server.close()
