"""Event files for TensorBoard: one folder per run, scalars with their original steps and times, and the settings.

A file is a sequence of records: length (uint64), its masked CRC, an Event message, its masked CRC.

    Event    wall_time = 1 (double)  step = 2 (int64)  file_version = 3 (string)  summary = 5 (Summary)
    Summary  value = 1: tag = 1, simple_value = 2 (float), tensor = 8, metadata = 9

TensorBoard stores values with 32 bits, so a value of 64 bits loses digits here; Parquet and CSV keep them all.
"""

import json
import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from mosaic.exports.crc32c import masked_crc32c
from mosaic.exports.protobuf import double, integer, message, single, text
from mosaic.exports.stored import Row

if TYPE_CHECKING:
    from mosaic.client import Run

BATCH = 20_000  # events that are checksummed together
_STRING = 7  # DT_STRING


def write_run(folder: Path, run: "Run", rows: Iterable[Row]) -> int:
    """Write one run into `folder`; returns the number of values."""
    folder.mkdir()
    started = run.created_at
    count = 0
    with open(folder / f"events.out.tfevents.{int(started)}.{run.run_id}", "wb") as file:
        file.write(_records([_version(started), _settings(run, started)]))
        events = _scalars(rows)
        while batch := list(islice(events, BATCH)):
            file.write(_records(batch))
            count += len(batch)
    return count


def _scalars(rows: Iterable[Row]) -> Iterator[bytes]:
    for row in rows:
        head = double(1, row.ts_ns / 1e9) + integer(2, row.step)
        for tag, value in row.values.items():
            yield head + message(5, message(1, text(1, tag) + single(2, value)))


def _version(started: float) -> bytes:
    return double(1, started) + text(3, "brain.Event:2")


def _settings(run: "Run", started: float) -> bytes:
    """A table for TensorBoard's Text tab."""
    settings = {"run_id": run.run_id, "worker": run.worker_name, **(run.settings or {})}
    rows = "\n".join(f"|{_cell(name)}|{_cell(value)}|" for name, value in settings.items())
    shape = message(2, integer(1, 1))
    tensor = integer(1, _STRING) + message(2, shape) + text(8, f"|setting|value|\n|-|-|\n{rows}")
    metadata = message(1, text(1, "text"))
    return double(1, started) + message(5, message(1, text(1, "settings") + message(8, tensor) + message(9, metadata)))


def _cell(value: object) -> str:
    shown = value if isinstance(value, str) else json.dumps(value)
    return shown.replace("|", "\\|").replace("\n", " ")


def _records(events: list[bytes]) -> bytes:
    lengths = [struct.pack("<Q", len(event)) for event in events]
    length_sums = masked_crc32c(lengths).tolist()
    sums = masked_crc32c(events).tolist()
    pack = struct.Struct("<I").pack
    together = zip(lengths, length_sums, events, sums, strict=True)
    return b"".join(part for length, a, event, b in together for part in (length, pack(a), event, pack(b)))
