"""Clock changes and disk errors for the processes that preload the library `preload.c`.

preload = Preload(folder)
os.environ.update(preload.variables)             # for all processes started from now on
preload.set_clock(3600)
with preload.broken(errno.EIO, "telemetry.sqlite"):
    …
"""

import contextlib
import functools
import mmap
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).with_name("preload.c")
SIZE = 264
WHERE = 248


class Preload:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "preload"
        self._path.write_bytes(bytes(SIZE))
        with open(self._path, "r+b") as file:
            self._now = mmap.mmap(file.fileno(), SIZE)

    @property
    def variables(self) -> dict[str, str]:
        return {"LD_PRELOAD": _library(), "MOSAIC_PRELOAD": str(self._path)}

    def set_clock(self, seconds: int) -> None:
        """Set the wall clock this far from the true time."""
        self._now[:8] = struct.pack("<q", seconds * 10**9)

    @contextlib.contextmanager
    def broken(self, error: int, where: str) -> Iterator[None]:
        """Inside the block, every change of a file whose path contains `where` fails with this errno."""
        self._now[16:SIZE] = where.encode().ljust(WHERE, b"\0")
        self._now[8:16] = struct.pack("<q", error)
        try:
            yield
        finally:
            self._now[8:16] = bytes(8)


def can_preload() -> bool:
    """Whether there is a C compiler, which MOSAIC itself does not need."""
    return shutil.which("cc") is not None


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mosaic-preload-")


@functools.cache
def _library() -> str:
    """Compiled once per process, because a library must not change while it is mapped."""
    path = Path(_folder().name) / "preload.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path, SOURCE, "-ldl"], check=True)
    return str(path)
