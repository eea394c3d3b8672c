"""Offline runs of Weights & Biases, for `wandb sync`: one folder per run with its file run-ID.wandb.

    FOLDER/offline-run-20261118_093000-01jcq…/run-01jcq….wandb

The file has 7 bytes (":W&B", 0xBEE1, version 0) and then records in LevelDB's log format: blocks of 32 KiB; a record
is CRC-32 of type and data, length (uint16), type (1 whole, 2 first, 3 middle, 4 last part), data. The data is a
`Record` of wandb_internal.proto:

    header = 21  run = 17  metric = 12  history = 2  summary = 3  exit = 18

W&B refuses rows whose step is not larger than that of the row before, which several loggers of one run would break.
So its `_step` is the number of the row, and every metric names its own axis, `global_step` or `episode`, as
`define_metric` does.
"""

import json
import math
import struct
import zlib
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mosaic import __version__
from mosaic.exports.protobuf import integer, message, text
from mosaic.exports.stored import EPISODES, Row
from mosaic.model.states import RunState

if TYPE_CHECKING:
    from mosaic.client import Run

PROJECT = "mosaic"
_HEADER = struct.pack("<4sHB", b":W&B", 0xBEE1, 0)
_BLOCK, _HEAD = 32768, 7
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def write_run(folder: Path, run: "Run", rows: Iterable[Row]) -> int:
    """Write one run into `folder`, which is W&B's folder of runs; returns the number of values."""
    run_id = run.run_id.lower()
    started = datetime.fromtimestamp(run.created_at, UTC)
    place = folder / f"offline-run-{started:%Y%m%d_%H%M%S}-{run_id}"
    (place / "files").mkdir(parents=True)
    with open(place / f"run-{run_id}.wandb", "wb") as file:
        writer = _Writer(_Log(file), run)
        for row in rows:
            writer.add(row)
        writer.end()
    return writer.values


class _Log:
    """LevelDB's log format."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._room = _BLOCK - len(_HEADER)
        file.write(_HEADER)

    def write(self, data: bytes) -> None:
        if self._room < _HEAD:
            self._fill()
        kind = _WHOLE if len(data) <= self._room - _HEAD else _FIRST
        while kind in (_FIRST, _MIDDLE):
            room = self._room - _HEAD
            self._part(kind, data[:room])
            data = data[room:]
            kind = _LAST if len(data) <= self._room - _HEAD else _MIDDLE
        self._part(kind, data)

    def _part(self, kind: int, data: bytes) -> None:
        checksum = zlib.crc32(data, zlib.crc32(bytes([kind])))
        self._file.write(struct.pack("<IHB", checksum, len(data), kind) + data)
        self._room -= _HEAD + len(data)
        if self._room == 0:
            self._room = _BLOCK

    def _fill(self) -> None:
        self._file.write(bytes(self._room))
        self._room = _BLOCK


class _Writer:
    """The records of one run, in W&B's order."""

    def __init__(self, log: _Log, run: "Run") -> None:
        self.values = 0
        self._log, self._run = log, run
        self._records = 0
        self._rows = 0
        self._defined: set[str] = set()
        self._last: dict[str, float] = {}
        self._seconds = 0.0
        self._write(21, message(1, text(1, f"mosaic-{__version__}") + text(2, "0.0.1")))
        self._write(17, _run_record(run))

    def add(self, row: Row) -> None:
        axis = "episode" if row.axis == EPISODES else "global_step"
        for name in row.values:
            if name not in self._defined and name != axis:
                self._defined.add(name)
                self._write(12, text(1, name) + text(4, axis))
        self._seconds = max(0.0, row.ts_ns / 1e9 - self._run.created_at)
        times = {"_timestamp": row.ts_ns / 1e9, "_runtime": self._seconds, "_step": self._rows}
        items = {axis: row.step, **row.values, **times}
        self._write(2, _items(1, items) + message(2, integer(1, self._rows)))
        self._last.update(row.values)
        self._rows += 1
        self.values += len(row.values)

    def end(self) -> None:
        if self._rows:
            self._write(3, _items(1, {**self._last, "_step": self._rows - 1, "_runtime": self._seconds}))
        code = 0 if self._run.state is RunState.TERMINATED or not self._run.state.is_over else 1
        self._write(18, integer(1, code) + integer(2, int(self._seconds)))

    def _write(self, field: int, content: bytes) -> None:
        self._records += 1
        self._log.write(integer(1, self._records) + message(field, content))


def _run_record(run: "Run") -> bytes:
    config = {**(run.settings or {}), "mosaic": _about(run)}
    updates = b"".join(message(1, text(1, key) + text(16, _json(value))) for key, value in config.items())
    seconds = int(run.created_at)
    start = integer(1, seconds) + integer(2, int((run.created_at - seconds) * 1e9))
    record = text(1, run.run_id.lower()) + text(3, PROJECT) + message(4, updates)
    record += text(6, run.experiment) + text(8, run.name or run.run_id) + text(9, run.note)
    return record + b"".join(text(10, tag) for tag in run.tags) + message(17, start)


def _about(run: "Run") -> dict[str, Any]:
    about = {"run_id": run.run_id, "worker": run.worker_name, "state": str(run.state)}
    return {**about, "experiment": run.experiment, "axes": run.axes}


def _items(field: int, items: dict[str, Any]) -> bytes:
    return b"".join(message(field, text(2, key) + text(16, _json(value))) for key, value in items.items())


def _json(value: Any) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return json.dumps(value)
