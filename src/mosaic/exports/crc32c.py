"""CRC-32C (Castagnoli), which TensorBoard's files use and the standard library does not have.

The checksums of many byte strings are computed at once, column by column: byte by byte in Python, a million events
would take a minute.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_POLYNOMIAL = 0x82F63B78


def masked_crc32c(parts: Sequence[bytes]) -> "np.ndarray":
    """The masked checksums of TFRecord files: rotated, so that the checksum of data with checksums is a good one."""
    import numpy as np

    crc = crc32c(parts)
    return np.asarray((crc >> 15 | crc << 17) + np.uint32(0xA282EAD8))


def crc32c(parts: Sequence[bytes]) -> "np.ndarray":
    import numpy as np

    found = np.zeros(len(parts), np.uint32)
    by_length: dict[int, list[int]] = {}
    for number, part in enumerate(parts):
        by_length.setdefault(len(part), []).append(number)
    for length, numbers in by_length.items():
        joined = b"".join(parts[number] for number in numbers)
        found[numbers] = _of_equal_length(np.frombuffer(joined, np.uint8).reshape(len(numbers), length))
    return found


def _of_equal_length(rows: "np.ndarray") -> "np.ndarray":
    import numpy as np

    table = _table()
    crc = np.full(len(rows), 0xFFFFFFFF, np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = table[(crc ^ column) & 0xFF] ^ (crc >> 8)
    return crc ^ np.uint32(0xFFFFFFFF)


@cache
def _table() -> "np.ndarray":
    import numpy as np

    crc = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        crc = np.where(crc & 1, crc >> 1 ^ np.uint32(_POLYNOMIAL), crc >> 1)
    return crc.astype(np.uint32)
