"""Gives freed memory back to the system: glibc keeps what gRPC has freed, for example after a flood of headers."""

import asyncio
import ctypes
import logging

log = logging.getLogger(__name__)
EVERY_S = 60.0


async def keep_giving_back(every_s: float = EVERY_S) -> None:
    trim = _trim()
    while trim is not None:
        await asyncio.sleep(every_s)
        await asyncio.to_thread(trim, 0)  # some milliseconds


def _trim() -> "ctypes._NamedFuncPointer | None":
    """glibc's malloc_trim; None where the C library has none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
