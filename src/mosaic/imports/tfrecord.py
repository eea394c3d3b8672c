"""TFRecord files: records of variable length, each with a checksum of its length and one of its data.

length: u64 │ masked CRC-32C of it: u32 │ data │ masked CRC-32C of the data: u32        little-endian
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from mosaic.imports.crc32c import checksum, masked
from mosaic.imports.files import CHUNK, opened

HEADER, FOOTER = 12, 4
LARGEST = 256 << 20  # a record that claims more is damaged
_HEADER = struct.Struct("<QI")


@dataclass
class Records:
    """Consecutive records in one buffer."""

    buffer: bytes
    starts: list[int] = field(default_factory=list)  # of their data
    lengths: list[int] = field(default_factory=list)
    end: int = 0  # the offset in the file behind the last one
    problem: str = ""  # why nothing more can be read


def read_records(path: Path, at: int) -> Iterator[Records]:
    """The complete records from byte `at` on, as many at a time as fit into a buffer."""
    with opened(path) as file:
        file.seek(at)
        rest, want = b"", CHUNK
        while data := file.read(want):
            buffer = rest + data
            records, need = _split(buffer, at)
            used = records.end - at
            at, rest = records.end, buffer[used:]
            want = max(CHUNK, need - len(rest))
            if records.starts or records.problem:
                yield records
            if records.problem:
                return
        if rest:
            yield Records(b"", end=at, problem=f"it ends inside a record, at byte {at:,}")


def _split(buffer: bytes, at: int) -> tuple[Records, int]:
    """The records in a buffer, and how many bytes the incomplete one behind them has."""
    records, place, end, need = Records(buffer), 0, len(buffer), 0
    starts, lengths = records.starts, records.lengths
    while place + HEADER <= end:
        length, found = _HEADER.unpack_from(buffer, place)
        if found != _length_checksum(length) or length > LARGEST:
            records.problem = f"it is damaged at byte {at + place:,}"
            break
        need = HEADER + length + FOOTER
        if place + need > end:
            break
        starts.append(place + HEADER)
        lengths.append(length)
        place += need
    records.end = at + place
    return records, need


@lru_cache(maxsize=65_536)
def _length_checksum(length: int) -> int:
    return masked(checksum(length.to_bytes(8, "little")))
