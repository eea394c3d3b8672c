"""The replay buffer: the steps of all envs in one ring of blocks, and the sequences in it.

    block      0      1      2      3      4        a block belongs to one stream (an env); its blocks are linked
    ordinal   10     11      7      8      9        never reused; block = ordinal % blocks, so the oldest goes first
    row id    ordinal * block_rows + offset         never reused; the step may be gone
    step id   row id + life * 2^48                  what a learner receives; invalid after the buffer is restored

A sequence is identified by its first row and follows the links, across the ends of episodes.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dreamer_worker.selector import make_selector
from dreamer_worker.storage import Storage

Rows = dict[str, np.ndarray]
NONE = -1
LIFE = 1 << 48


@dataclass
class Stream:
    """The steps that one env has sent without a gap."""

    seq: int = NONE  # the number of the last step
    rows: int = 0  # steps since the last gap
    blocks: list[int] = field(default_factory=list)  # ordinals; the last ones, as many as a sequence may span
    forgotten: int = 0  # blocks before those


class Buffer:
    """Its promises:

    1. It never uses more than `max_bytes` for steps, and `disk_bytes` in `folder` beyond them; the newest block
       overwrites the oldest.
    2. A step that is inserted twice is stored once; a sequence never contains a gap in the numbers of a stream.
    3. A sampled sequence may be updated later; steps that are gone by then, or were sampled before the buffer was
       restored, are skipped.
    """

    def __init__(
        self,
        spaces: Mapping[str, tuple[str, tuple[int, ...]]],
        length: int,
        max_bytes: int,
        shares: Mapping[str, float] | None = None,
        block_rows: int = 256,
        seed: int = 0,
        online: bool = True,
        disk_bytes: int = 0,
        folder: Path | None = None,
    ) -> None:
        self.spaces = {key: (np.dtype(dtype), tuple(shape)) for key, (dtype, shape) in spaces.items()}
        self.length = length
        self.block_rows = block_rows
        self.row_bytes = sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in self.spaces.values())
        self.blocks = int((max_bytes + disk_bytes) // (self.row_bytes * block_rows))
        if self.blocks * block_rows < 2 * length or self.blocks < 2:
            raise ValueError(
                f"A replay of {max_bytes} bytes has no room for two sequences of {length} steps of {self.row_bytes} "
                f"bytes in blocks of {block_rows}. Increase it."
            )
        self.online = online
        self.duplicates = 0
        self.gaps = 0
        self._lock = threading.Lock()
        self._rng = np.random.default_rng(seed)
        rows = self.blocks * block_rows
        self._storage = Storage(self.spaces, rows, block_rows, max_bytes, folder if disk_bytes else None)
        self._store = self._storage.arrays
        self._selector = make_selector(dict(shares or {"uniform": 1.0}), self.blocks * block_rows, block_rows)
        self._allocated = 0
        self._ordinals = np.full(self.blocks, NONE, np.int64)
        self._filled = np.zeros(self.blocks, np.int64)
        self._next = np.full(self.blocks, NONE, np.int64)
        self._starts = np.zeros(self.blocks, np.int64)
        self._streams: dict[str, Stream] = {}
        # If less is replayed than inserted, the oldest entries are never reached: keep only those that still exist.
        self._online: deque[int] = deque(maxlen=self.blocks * (block_rows // length + 1))
        self._life = secrets.randbelow(1 << 15)

    def __len__(self) -> int:
        """The number of sequences."""
        return self._start_count

    _start_count = 0

    @property
    def steps(self) -> int:
        return int(self._filled.sum())

    def insert(self, rows: Rows, streams: Sequence[str], seqs: Sequence[int] | np.ndarray) -> int:
        """Add one step of each stream; returns how many were new. Rows of other keys or shapes are refused."""
        self._check(rows, len(streams))
        with self._lock:
            places = [self._place(stream, int(seq)) for stream, seq in zip(streams, seqs, strict=True)]
            keep = [index for index, place in enumerate(places) if place != NONE]
            if not keep:
                return 0
            at = np.asarray([places[index] for index in keep])
            self._storage.touch(len(keep), self._newest)
            for key, store in self._store.items():
                value = rows[key]
                store[at] = value if len(keep) == len(places) else value[keep]
            self._note_starts([streams[index] for index in keep])
            return len(keep)

    def sample(
        self,
        count: int,
        length: int | None = None,
        online: bool = False,
        first: Mapping[str, int] | None = None,
    ) -> Rows | None:
        """`count` sequences, with the `stepid`s to update them by; None while there are none.

        `online`: new ones first. `first`: keys of which only the first steps are needed, and how many.
        """
        with self._lock:
            if not self._start_count:
                return None
            starts = self._draw(count, online)
            slots, ids = self._trace(starts, length or self.length)
            self._storage.touch(slots.size, self._newest)
            cut = {key: slots[:, :steps] for key, steps in (first or {}).items()}
            batch = {key: store.take(cut.get(key, slots), axis=0) for key, store in self._store.items()}
        batch["stepid"] = ids
        return _mark_edges(batch)

    def update(
        self, ids: np.ndarray, values: Rows, starts: np.ndarray | None = None, priority: np.ndarray | None = None
    ) -> None:
        """Overwrite the steps `ids` with `values`, and set the priorities of the sequences that begin at `starts`."""
        with self._lock:
            slots, live = self._find(ids)
            for key, value in values.items():
                self._store[key][slots[live]] = value[live]
            if priority is not None and starts is not None:
                begin, live = self._find(starts)
                steps = np.asarray(priority, np.float64)
                self._selector.prioritize(begin[live], (0.5 * steps.max(1) + 0.5 * steps.mean(1))[live])

    @property
    def _newest(self) -> int:
        return (self._allocated - 1) % self.blocks

    def stats(self) -> dict[str, float]:
        steps = self.steps
        return {
            "sequences": len(self),
            "steps": steps,
            "gigabytes": steps * self.row_bytes / 1e9,
            "duplicates": self.duplicates,
            "gaps": self.gaps,
            "streams": len(self._streams),
        }

    def _check(self, rows: Rows, count: int) -> None:
        """Checked before a slot is taken: a slot without its step would be replayed."""
        for key, (_, shape) in self.spaces.items():
            if key not in rows or np.shape(rows[key]) != (count, *shape):
                found = np.shape(rows[key]) if key in rows else "missing"
                raise ValueError(f"{key} of {count} steps must have shape {(count, *shape)} and is {found}")

    def _place(self, name: str, seq: int) -> int:
        """The slot for the next step of a stream; NONE for a duplicate."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream()
        elif seq <= stream.seq:
            self.duplicates += 1
            return NONE
        elif seq != stream.seq + 1:
            self.gaps += 1
            _break(stream)
        offset = stream.rows % self.block_rows
        if stream.blocks and not self._is_live(stream.blocks[-1]):
            _break(stream)  # so slow that its block was overwritten
            offset = 0
        if offset == 0:
            self._extend(stream)
        block = stream.blocks[-1] % self.blocks
        stream.seq = seq
        stream.rows += 1
        self._filled[block] = offset + 1
        return block * self.block_rows + offset

    def _extend(self, stream: Stream) -> None:
        ordinal, self._allocated = self._allocated, self._allocated + 1
        block = ordinal % self.blocks
        self._selector.drop_block(block)
        self._start_count -= int(self._starts[block])
        self._ordinals[block], self._filled[block] = ordinal, 0
        self._next[block], self._starts[block] = NONE, 0
        if stream.blocks:
            self._next[stream.blocks[-1] % self.blocks] = ordinal
        stream.blocks.append(ordinal)
        if len(stream.blocks) > self._span:
            del stream.blocks[0]
            stream.forgotten += 1

    def _note_starts(self, names: Sequence[str]) -> None:
        """Each new step may complete a sequence: the one that ends with it."""
        slots = []
        for name in names:
            stream = self._streams[name]
            first = stream.rows - self.length
            if first < 0:
                continue
            ordinal = stream.blocks[first // self.block_rows - stream.forgotten]
            if not self._is_live(ordinal):
                continue
            slots.append(ordinal % self.blocks * self.block_rows + first % self.block_rows)
            self._starts[ordinal % self.blocks] += 1
            if self.online and first % self.length == 0:
                self._online.append(ordinal * self.block_rows + first % self.block_rows)
        if slots:
            self._start_count += len(slots)
            self._selector.add(np.asarray(slots))

    def _draw(self, count: int, online: bool) -> np.ndarray:
        fresh: list[int] = []
        while online and self.online and self._online and len(fresh) < count:
            row_id = self._online.popleft()
            ordinal, offset = divmod(row_id, self.block_rows)
            if self._is_live(ordinal):
                fresh.append(ordinal % self.blocks * self.block_rows + offset)
        drawn = self._selector.draw(count - len(fresh), self._rng) if len(fresh) < count else np.zeros(0, np.int64)
        return np.concatenate([np.asarray(fresh, np.int64), drawn])

    def _trace(self, starts: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Slots and step ids of sequences, along the links."""
        chain = [self._ordinals[starts // self.block_rows]]
        for _ in range(self._span - 1):
            chain.append(self._next[chain[-1] % self.blocks])
        offsets = starts[:, None] % self.block_rows + np.arange(length)
        ordinals = np.stack(chain, 1)[np.arange(len(starts))[:, None], offsets // self.block_rows]
        offsets %= self.block_rows
        ids = ordinals * self.block_rows + offsets + self._life * LIFE
        return ordinals % self.blocks * self.block_rows + offsets, ids

    def _find(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # After a restore the same ordinals are used again, for other steps.
        lives, rows = np.divmod(ids.astype(np.int64), LIFE)
        ordinals, offsets = np.divmod(rows, self.block_rows)
        blocks = ordinals % self.blocks
        live = (lives == self._life) & (self._ordinals[blocks] == ordinals) & (offsets < self._filled[blocks])
        return blocks * self.block_rows + offsets, live

    def _is_live(self, ordinal: int) -> bool:
        return bool(self._ordinals[ordinal % self.blocks] == ordinal)

    @property
    def _span(self) -> int:
        """The number of blocks that a sequence may span."""
        return (self.length - 2) // self.block_rows + 2

    # A checkpoint first lists what is in memory, quickly, and copies it block by block afterwards.

    def snapshot(self) -> dict[str, Any]:
        """The present state as JSON data; the blocks that it lists are read with `block`."""
        with self._lock:
            self._streams = {name: stream for name, stream in self._streams.items() if self._holds(stream)}
            live = sorted(int(ordinal) for ordinal in self._ordinals if ordinal != NONE)
            return {
                "block_rows": self.block_rows,
                "spaces": {key: [dtype.str, list(shape)] for key, (dtype, shape) in self.spaces.items()},
                "allocated": self._allocated,
                "blocks": [self._describe(ordinal) for ordinal in live],
                "streams": {
                    name: vars(stream).copy() | {"blocks": list(stream.blocks)}
                    for name, stream in self._streams.items()
                },
                "online": list(self._online),
            }

    def block(self, ordinal: int, rows: int) -> Rows | None:
        """A copy of a block's first rows; None if it was overwritten."""
        with self._lock:
            if not self._is_live(ordinal):
                return None
            begin = ordinal % self.blocks * self.block_rows
            return {key: store[begin : begin + rows].copy() for key, store in self._store.items()}

    def restore(self, snapshot: Mapping[str, Any], blocks: Mapping[int, Rows]) -> None:
        """Restore the state that `snapshot` describes. A smaller buffer keeps the newest blocks."""
        own = {key: [dtype.str, list(shape)] for key, (dtype, shape) in self.spaces.items()}
        if snapshot["block_rows"] != self.block_rows or snapshot["spaces"] != own:
            raise ValueError(
                "The keys, shapes or block sizes of the saved replay differ from this one's. Start without it."
            )
        with self._lock:
            self._allocated = snapshot["allocated"]
            kept = [entry for entry in snapshot["blocks"] if entry["ordinal"] >= self._allocated - self.blocks]
            for entry in kept:
                self._put(entry, blocks[entry["ordinal"]])
            self._streams = {name: Stream(**fields) for name, fields in snapshot["streams"].items()}
            self._online.extend(snapshot["online"])
            self._find_starts([entry["ordinal"] for entry in kept])

    def _describe(self, ordinal: int) -> dict[str, int]:
        block = ordinal % self.blocks
        return {"ordinal": ordinal, "rows": int(self._filled[block]), "next": int(self._next[block])}

    def _holds(self, stream: Stream) -> bool:
        return bool(stream.blocks) and self._is_live(stream.blocks[-1])

    def _put(self, entry: Mapping[str, int], rows: Rows) -> None:
        block = entry["ordinal"] % self.blocks
        begin = block * self.block_rows
        for key, store in self._store.items():
            store[begin : begin + entry["rows"]] = rows[key]
        self._ordinals[block], self._filled[block], self._next[block] = entry["ordinal"], entry["rows"], entry["next"]

    def _find_starts(self, ordinals: Sequence[int]) -> None:
        ahead: dict[int, int] = {}  # from the first row of a block to the end of its stream; later blocks first
        for ordinal in sorted(ordinals, reverse=True):
            block = ordinal % self.blocks
            rows = int(self._filled[block])
            ahead[ordinal] = rows + ahead.get(int(self._next[block]), 0)
            starts = max(0, min(rows, ahead[ordinal] - self.length + 1))
            self._starts[block] = starts
        for ordinal in sorted(ordinals):  # oldest first, in insertion order
            block = ordinal % self.blocks
            self._selector.add(np.arange(self._starts[block]) + block * self.block_rows)
        self._start_count = int(self._starts.sum())


def _break(stream: Stream) -> None:
    stream.rows, stream.blocks, stream.forgotten = 0, [], 0


def _mark_edges(batch: Rows) -> Rows:
    """Mark the first step as an episode's first; an abandoned episode ends where the next one begins."""
    if "is_first" in batch:
        if "is_last" in batch:
            batch["is_last"][:, :-1] |= batch["is_first"][:, 1:]
        batch["is_first"][:, 0] = True
    return batch
