"""Atomic writes: a file holds its old content or all of the new one, also after a crash or a power loss.

    write_json("eval_summary.json", {"episodes": 10})

    with atomic_file("checkpoint.pt") as file:
        torch.save(state, file)

Each write goes to a temporary file in the same folder, is flushed to disk and then renamed. Missing parent folders are
created. When writing fails (disk full), the temporary file is removed and the old file stays as it was.
"""

import json
import os
import zlib
from contextlib import contextmanager
from typing import IO, Any, Dict, Iterator, Mapping, Optional, Union

Path = Union[str, "os.PathLike[str]"]
_LONGEST_NAME = 255  # bytes, on every Linux file system


@contextmanager
def atomic_file(path: Path, *, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A binary file that replaces `path` when the block ends. `mode` is subject to the umask, as in os.open."""
    target = os.fspath(path)
    folder, name = os.path.split(target)
    os.makedirs(folder or ".", exist_ok=True)
    # Random, because neither threads nor the workers of two runs, each in a PID namespace, have a PID of their own.
    temp = os.path.join(folder, f".{name}.{os.urandom(6).hex()}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(temp, flags, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temp, target)
    except BaseException:
        _remove(temp)
        raise
    _sync_folder(folder or ".")


def is_file_name(text: str) -> bool:
    """Whether it names a file in a folder, and never the folder itself, another folder, or a path."""
    return bool(text.strip(".")) and not set(text) & {"/", "\0"} and len(os.fsencode(text)) <= _LONGEST_NAME


def as_file_name(text: str) -> str:
    """The text with everything replaced that a file system refuses or that leads out of a folder; never empty.

    A text that had to be changed gets a mark of its own, so that two different texts never become the same name.
    """
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in text).strip(".")[:60]
    if plain and plain == text:
        return text
    return f"{plain or 'unnamed'}-{zlib.crc32(text.encode(errors='surrogatepass')):08x}"


def write_bytes(path: Path, data: bytes, *, mode: int = 0o666) -> str:
    """Write `data`; returns the path."""
    with atomic_file(path, mode=mode) as file:
        file.write(data)
    return os.fspath(path)


def write_text(path: Path, text: str, *, mode: int = 0o666) -> str:
    """Write `text` as UTF-8; returns the path."""
    return write_bytes(path, text.encode(), mode=mode)


def write_json(
    path: Path, document: Mapping[str, Any], *, indent: Optional[int] = None, default: Any = None, mode: int = 0o666
) -> str:
    """Write a JSON object with a final newline; returns the path. `default` converts other values, as in json.dumps."""
    # Encoded first: a value that JSON cannot hold raises before anything is written.
    return write_text(path, json.dumps(document, indent=indent, default=default) + "\n", mode=mode)


def read_json(path: Path) -> Dict[str, Any]:
    """The JSON object in a file. OSError if it cannot be read, ValueError if it is damaged or not an object."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        document = json.loads(data)
    except RecursionError:
        raise ValueError(f"{os.fspath(path)} is nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError(f"{os.fspath(path)} does not hold a JSON object")
    return document


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass  # it could not be created either


def _sync_folder(folder: str) -> None:
    """Flush the folder to disk: otherwise a power loss may undo the rename."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
