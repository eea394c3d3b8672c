"""CRC-32C (Castagnoli), as TFRecord files have it: one checksum in Python, many of equal length at once in numpy."""

from functools import cache
from typing import Any

POLYNOMIAL = 0x82F63B78  # reversed


@cache
def table() -> list[int]:
    found = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        found.append(value)
    return found


def checksum(data: bytes) -> int:
    value, steps = 0xFFFFFFFF, table()
    for byte in data:
        value = steps[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def masked(value: int) -> int:
    """The form in which TFRecord stores a checksum, so that a checksum of checksums is not degenerate."""
    return ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF


def masked_checksums(rows: Any) -> Any:
    """The stored checksums of the rows of a uint8 matrix, as an array of uint32."""
    import numpy as np

    steps = np.array(table(), dtype=np.uint32)
    value = np.full(len(rows), 0xFFFFFFFF, dtype=np.uint32)
    for column in np.ascontiguousarray(rows.T):
        value = steps[(value ^ column) & 0xFF] ^ (value >> np.uint32(8))
    value = ~value
    return (value >> np.uint32(15) | value << np.uint32(17)) + np.uint32(0xA282EAD8)
