"""Bad weather: a clock that somebody sets and a disk that refuses, for the processes that preload `weather.c`.

weather = Weather(folder)
os.environ.update(weather.variables)             # for all that is started from now on
weather.set_clock(3600)
with weather.broken(errno.EIO, "telemetry.sqlite"):
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

SOURCE = Path(__file__).with_name("weather.c")
SIZE = 264
WHERE = 248


class Weather:
    def __init__(self, folder: Path) -> None:
        self._path = folder / "weather"
        self._path.write_bytes(bytes(SIZE))
        with open(self._path, "r+b") as file:
            self._now = mmap.mmap(file.fileno(), SIZE)

    @property
    def variables(self) -> dict[str, str]:
        return {"LD_PRELOAD": _library(), "MOSAIC_WEATHER": str(self._path)}

    def set_clock(self, seconds: int) -> None:
        """Shift the wall clock by so much from the true one."""
        self._now[:8] = struct.pack("<q", seconds * 10**9)

    @contextlib.contextmanager
    def broken(self, error: int, where: str) -> Iterator[None]:
        """Meanwhile every change of a file whose path contains `where` fails with this errno."""
        self._now[16:SIZE] = where.encode().ljust(WHERE, b"\0")
        self._now[8:16] = struct.pack("<q", error)
        try:
            yield
        finally:
            self._now[8:16] = bytes(8)


def can_make_weather() -> bool:
    """Whether there is a C compiler: MOSAIC itself needs none."""
    return shutil.which("cc") is not None


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="mosaic-weather-")


@functools.cache
def _library() -> str:
    """Compiled once per process, for a library must not change under those that have it mapped."""
    path = Path(_folder().name) / "weather.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path, SOURCE, "-ldl"], check=True)
    return str(path)
