"""Where a replay buffer keeps its steps: in memory, or partly on disk.

On disk, the arrays are mapped files without a name: they vanish with the process, however it ends. The system writes
them out when it needs the memory; the newest `memory_blocks` blocks are left to stay, and the pages of older ones are
given back every so often, so that this process does not hold more than about its limit. Whether a step is in memory or
on disk, it has the same place in the arrays: drawing and updating need not know.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

Spaces = Mapping[str, tuple[np.dtype, tuple[int, ...]]]


class Storage:
    """An array of rows per key. `folder` is for what does not fit into `memory_bytes`; without it all is in memory."""

    def __init__(self, spaces: Spaces, rows: int, block_rows: int, memory_bytes: int, folder: Path | None) -> None:
        self._maps: list[mmap.mmap] = []
        self.is_mapped = folder is not None
        self._block_rows, self._rows = block_rows, rows
        row_bytes = sum(dtype.itemsize * int(np.prod(shape)) for dtype, shape in spaces.values())
        self.memory_blocks = max(1, memory_bytes // (row_bytes * block_rows))
        # Reading old steps brings their pages back: given back when they may be a tenth of the limit.
        self._most_touched = max(block_rows, memory_bytes // row_bytes // 10)
        self._touched = 0
        self.arrays = {key: self._array(dtype, (rows, *shape), folder) for key, (dtype, shape) in spaces.items()}

    def touch(self, rows: int, newest: int) -> None:
        """`rows` rows are about to be read or written. `newest` is the block that is being filled."""
        if not self.is_mapped:
            return
        self._touched += rows
        if self._touched >= self._most_touched:
            self._touched = 0
            self._release(newest)

    def _array(self, dtype: np.dtype, shape: tuple[int, ...], folder: Path | None) -> np.ndarray:
        size = max(mmap.PAGESIZE, dtype.itemsize * int(np.prod(shape)))
        if folder is None:
            # Empty, it takes no memory. Not np.zeros, which asks for huge pages: where memory is fragmented, the kernel
            # takes several times as long to make one as the steps in it take to be inserted.
            mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            return np.frombuffer(mapped, dtype, int(np.prod(shape))).reshape(shape)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.truncate(size)
            mapped = mmap.mmap(file.fileno(), size)
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype, int(np.prod(shape))).reshape(shape)

    def _release(self, newest: int) -> None:
        """Give back the pages of all but the newest blocks; what is in them stays, in the file."""
        blocks = self._rows // self._block_rows
        if blocks <= self.memory_blocks:
            return
        end = (newest - self.memory_blocks) % blocks + 1  # one after the newest of the old blocks
        old = blocks - self.memory_blocks
        for begin, count in ((end - old, old),) if end >= old else ((0, end), (blocks - (old - end), old - end)):
            for mapped, array in zip(self._maps, self.arrays.values(), strict=True):
                block_bytes = array.strides[0] * self._block_rows
                first = -(-begin * block_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
                length = (begin + count) * block_bytes // mmap.PAGESIZE * mmap.PAGESIZE - first
                if length > 0:
                    mapped.madvise(mmap.MADV_DONTNEED, first, length)


def free_bytes(folder: Path) -> int:
    """How much the disk of `folder` has left."""
    while not folder.exists():
        folder = folder.parent
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
