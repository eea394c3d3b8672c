"""Opens files that other programs wrote: regular files of bounded size; no link, FIFO or device."""

import csv
import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

from mosaic.model.durable import open_regular, read_bytes

LARGEST_TEXT = 4 << 20  # of a file with settings
LARGEST_FILE = 16 << 30
LONGEST_LINE = 16 << 20
HEAD = 256  # bytes that identify a file which grows
CHUNK = 2 << 20
SCIENTIFIC = re.compile(r"[-+]?[0-9][0-9_]*(?:\.[0-9]*)?[eE][-+]?[0-9]+\Z")


class Changed(Exception):
    """A file that was replaced after the last import."""

    def __init__(self, name: str) -> None:
        super().__init__(
            "it was replaced or truncated after the last import. Delete the run (mosaic rm) and import it again"
        )


class Damaged(Exception):
    """The content of a file is not what its format says."""


@dataclass(frozen=True)
class Head:
    """The first bytes of a file."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()[:16]

    def prefix(self, size: object) -> str:
        """The digest of its first `size` bytes; empty if it has fewer."""
        fits = isinstance(size, int) and 0 <= size <= len(self.data)
        return Head(self.data[:size]).digest if fits and isinstance(size, int) else ""


def head_of(path: Path) -> Head:
    with opened(path) as file:
        return Head(file.read(HEAD))


def opened(path: Path) -> BufferedReader:
    """A regular file, open for reading; OSError for anything else."""
    file = open(open_regular(path, any_owner=True), "rb")  # noqa: SIM115
    if os.fstat(file.fileno()).st_size > LARGEST_FILE:
        file.close()
        raise OSError(27, f"has more than {LARGEST_FILE >> 30} GiB", str(path))
    return file


def modified_at(path: Path) -> float:
    """When a file was last written; 0 if there is none."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def read_text(path: Path) -> str:
    return read_bytes(path, LARGEST_TEXT, any_owner=True).decode(errors="replace")


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty if there is none."""
    try:
        value = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; empty if there is none, or it is not made of plain values."""
    import yaml

    try:
        text = read_text(path)
        # Aliases multiply: ten lines can stand for a billion values.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text)):
            return {}
        value = yaml.load(text, _loader())
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return value if isinstance(value, dict) else {}


def _loader() -> type[Any]:
    """A safe loader for which 4e-05 is a number, as Dreamer's and W&B's files write it; to YAML 1.1 it is text."""
    import yaml

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_implicit_resolver("tag:yaml.org,2002:float", SCIENTIFIC, list("-+0123456789"))
    return Loader


def lines_after(path: Path, at: int) -> Iterator[tuple[bytes, int]]:
    """Complete lines from byte `at` on, each with the offset behind it. Damaged for an endless one."""
    with opened(path) as file:
        file.seek(at)
        while line := file.readline(LONGEST_LINE):
            if not line.endswith(b"\n"):
                if len(line) == LONGEST_LINE:
                    raise Damaged(f"a line at byte {at:,} has more than {LONGEST_LINE >> 20} MiB")
                return  # being written, or cut
            at += len(line)
            yield line, at


def csv_rows(path: Path) -> Iterator[list[str]]:
    """The rows of a CSV file, without a last one that is incomplete. Comment lines are rows of one cell."""
    lines = (line.decode(errors="replace") for line, _ in lines_after(path, 0))
    try:
        yield from csv.reader(line.replace("\0", "") for line in lines)
    except csv.Error as error:
        raise Damaged(str(error)) from error
