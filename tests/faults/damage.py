"""Damage to one file or folder: the eleven kinds of issue 15, and a copy of what belongs to another run.

Standard library only: the insider imports it, so that a worker can do the same to its own files. Links lead to files
outside the state root; nothing here writes, reads to the end or changes modes through a link.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

HUGE_BYTES = 8 << 30  # sparse: it uses no blocks
PASSWD, ZERO = "/etc/passwd", "/dev/zero"
# Of this user, so that a link that is followed does change it; and no other program's, whose changes would be reported.
FOLDER = f"/tmp/mosaic-elsewhere-{os.getuid()}"
STRANGER = 12345  # a user that owns nothing here


class Impossible(Exception):
    """This damage does not apply to this file, or this process may not do it."""


def missing(path: Path, donor: Path) -> None:
    """It is gone."""
    _remove(path)


def empty(path: Path, donor: Path) -> None:
    """It has no bytes."""
    _need_a_file(path)
    os.truncate(path, 0)


def truncated(path: Path, donor: Path) -> None:
    """It ends in the middle."""
    size = _need_a_file(path)
    if not size:
        raise Impossible("it is empty")
    os.truncate(path, size // 2)


def flipped(path: Path, donor: Path) -> None:
    """One byte in the middle differs."""
    size = _need_a_file(path)
    if not size:
        raise Impossible("it is empty")
    with open(path, "r+b") as file:
        file.seek(size // 2)
        byte = file.read(1)
        file.seek(size // 2)
        file.write(bytes([byte[0] ^ 0xFF]))


def wrong_type(path: Path, donor: Path) -> None:
    """It is well-formed, and every value in it has a type that nobody wrote."""
    size = _need_a_file(path)
    if path.suffix in (".sqlite", ".db"):
        _spoil_tables(path)
        return
    source = path if size else donor  # a file that is written at the end of a run
    try:
        value = json.loads(source.read_bytes()[: 1 << 20])
    except (ValueError, OSError):
        path.write_bytes(b"\xff\xfe\x00 not what it was\n" * 4)
        return
    changed = {key: _other(one) for key, one in value.items()} if isinstance(value, dict) else {"x": value}
    path.write_text(json.dumps(changed))


def fifo(path: Path, donor: Path) -> None:
    """A pipe that nobody writes to: opening it waits."""
    _remove(path)
    os.mkfifo(path)


def folder(path: Path, donor: Path) -> None:
    """A folder in place of a file, a file in place of a folder."""
    was_folder = path.is_dir() and not path.is_symlink()
    _remove(path)
    if was_folder:
        path.write_bytes(b"not a folder\n")
    else:
        path.mkdir()
        (path / "inside").write_bytes(b"x")


def link_to_itself(path: Path, donor: Path) -> None:
    _remove(path)
    path.symlink_to(path)


def link_elsewhere(path: Path, donor: Path) -> None:
    """A link to /etc/passwd, or to a folder of the same user for a folder."""
    target = FOLDER if path.is_dir() else PASSWD
    os.makedirs(FOLDER, exist_ok=True)
    _remove(path)
    path.symlink_to(target)


def link_to_zero(path: Path, donor: Path) -> None:
    """A link to a file without an end."""
    _remove(path)
    path.symlink_to(ZERO)


def huge(path: Path, donor: Path) -> None:
    """It is as large as no file of this name ever is."""
    size = _need_a_file(path)
    os.truncate(path, HUGE_BYTES)
    if path.stat().st_blocks * 512 > size + (1 << 30):
        os.truncate(path, size)
        raise Impossible("this file system has no sparse files")


def other_owner(path: Path, donor: Path) -> None:
    """It belongs to another user."""
    if os.geteuid():
        raise Impossible("only root can give a file away")
    os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


def no_mode(path: Path, donor: Path) -> None:
    """Nobody may read or write it (root may)."""
    if path.is_symlink() or not path.is_dir():
        _need_a_file(path)
    os.chmod(path, 0)


def of_another(path: Path, donor: Path) -> None:
    """A byte-for-byte copy of what belongs to another run: everything in it is true, but not of this run."""
    if donor == path or not donor.is_file():
        raise Impossible("no other run has one")
    data = donor.read_bytes()
    _need_a_file(path)
    path.write_bytes(data)


Damage = Callable[[Path, Path], None]
DAMAGES: dict[str, Damage] = {
    "missing": missing,
    "empty": empty,
    "truncated": truncated,
    "flipped byte": flipped,
    "wrong type": wrong_type,
    "FIFO": fifo,
    "directory": folder,
    "link to itself": link_to_itself,
    "link elsewhere": link_elsewhere,
    "link to /dev/zero": link_to_zero,
    "huge": huge,
    "other owner": other_owner,
    "mode 000": no_mode,
    "another run's": of_another,
}


NEEDS_SOMETHING = ("missing", "truncated", "flipped byte", "other owner")
SAMPLE_BYTES = 1 << 20


def inflict(kind: str, path: Path, donor: Path) -> dict[str, Any]:
    """Do it and prove it: what the file was and is, as this process sees them. `refused` says why nothing was done."""
    before = look(path)
    try:
        if before["type"] == "none" and kind in NEEDS_SOMETHING:
            raise Impossible("it does not exist")
        DAMAGES[kind](path, donor)
    except (Impossible, OSError, sqlite3.Error) as error:
        return {"refused": f"{error}", "before": before, "after": look(path)}
    after = look(path)
    problem = _not_proven(kind, before, after) if not _is_in_tables(kind, path) else ""
    return {"refused": problem, "before": before, "after": after}


def look(path: Path) -> dict[str, Any]:
    """What lies at `path` now; links are not followed. `place` is the folder that this process sees it in."""
    place = ""
    with contextlib.suppress(OSError):
        parent = path.parent.stat()
        place = f"{parent.st_dev}:{parent.st_ino}"
    try:
        found = path.lstat()
    except OSError as error:
        return {"type": "none", "why": error.strerror, "place": place}
    return {
        "type": _type_of(found.st_mode),
        "size": found.st_size,
        "mode": stat.S_IMODE(found.st_mode),
        "owner": found.st_uid,
        "inode": found.st_ino,
        "digest": _digest(path, found),
        "place": place,
    }


def _not_proven(kind: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    wanted = {
        "missing": after["type"] == "none",
        "FIFO": after["type"] == "fifo",
        "directory": after["type"] in ("folder", "file") and after["type"] != before["type"],
        "huge": after.get("size", 0) >= HUGE_BYTES,
        "other owner": after.get("owner") == STRANGER,
        "mode 000": after.get("mode") == 0,
    }
    if kind.startswith("link"):
        return "" if after["type"] == "link" else "it is no link afterwards"
    is_proven = wanted.get(kind, before != after)
    return "" if is_proven else f"it did not change: {after}"


def _is_in_tables(kind: str, path: Path) -> bool:
    """SQLite has confirmed the rows; they may still be in the WAL."""
    return kind == "wrong type" and path.suffix in (".sqlite", ".db")


def _type_of(mode: int) -> str:
    tests = {"file": stat.S_ISREG, "folder": stat.S_ISDIR, "fifo": stat.S_ISFIFO, "link": stat.S_ISLNK}
    return next((name for name, test in tests.items() if test(mode)), "socket or device")


def _digest(path: Path, found: os.stat_result) -> str:
    """Of the beginning and the middle, where a flipped byte is."""
    if not stat.S_ISREG(found.st_mode):
        return ""
    try:
        with open(path, "rb") as file:
            sample = file.read(SAMPLE_BYTES)
            file.seek(found.st_size // 2)
            return hashlib.sha256(sample + file.read(SAMPLE_BYTES)).hexdigest()
    except OSError:
        return ""


def _need_a_file(path: Path) -> int:
    """The size of a regular file that its owner may write; one that is not there yet is made, to be found later."""
    if not os.path.lexists(path):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    if path.is_symlink() or not path.is_file():
        raise Impossible("it is not a regular file")
    os.chmod(path, 0o600)
    return path.stat().st_size


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.is_symlink() or path.exists():
        path.unlink()


def _other(value: Any) -> Any:
    match value:
        case bool() | None:
            return "yes"
        case int() | float():
            return [value]
        case str():
            return {"text": 7}
        case _:
            return -1


def _spoil_tables(path: Path) -> None:
    """Every column that is not part of a key gets text; SQLite stores any type in any column."""
    with contextlib.closing(sqlite3.connect(path, timeout=5.0)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        spoiled = sum(_spoil(db, table) for table in tables if not table.startswith("sqlite_"))
        db.commit()
    if not spoiled:
        raise Impossible("no table accepts a wrong value")


def _spoil(db: sqlite3.Connection, table: str) -> int:
    columns = db.execute(f"SELECT name, type, pk FROM pragma_table_info('{table}')").fetchall()
    done = 0
    for name, kind, is_key in columns:
        if is_key:
            continue
        wrong = b"\xff" if "TEXT" in kind.upper() else "not a number"
        with contextlib.suppress(sqlite3.Error):  # a CHECK, STRICT or UNIQUE refuses it
            done += db.execute(f'UPDATE "{table}" SET "{name}" = ? WHERE rowid = 1', (wrong,)).rowcount
    return done
