"""Checks the state root before anything is written into it: local, ours, private, writable, and of this machine."""

import errno
import hashlib
import os
import socket
import tempfile
import uuid
from pathlib import Path

from mosaic.model import durable
from mosaic.model.errors import BadRoot
from mosaic.model.home import refuse_odd
from mosaic.model.owner import ADVICE, refuse_foreign
from mosaic.model.place import Place, is_unused, record_place, recorded_place, refuse_shifted
from mosaic.model.rundir import StateRoot

# SQLite's locks and WAL need all writers on one kernel; these file systems may have several.
NETWORK_FILESYSTEMS = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs", "glusterfs"}
    | {"gpfs", "lustre", "ncpfs", "nfs", "nfs4", "pvfs2", "smb2", "smb3", "smbfs"}
)

LARGEST_MARK = 4096


def check_root(root: StateRoot, machine: str = "", mounts: Path = Path("/proc/self/mounts")) -> None:
    """Create the folders (0700) and the record of machine and place, or raise BadRoot with advice.

    `machine` and `mounts` are this machine's own unless given.
    """
    prepare_root(root, mounts)
    mark = machine or machine_mark()
    if not _is_marked(root, mark):
        mark_machine(root, mark)
    refuse_shifted(root)
    recorded = recorded_place(root)
    if not recorded or (recorded != Place.of(root) and is_unused(root)):
        _record(root)
    try:
        root.make()
    except OSError as error:
        raise BadRoot(f"{error.filename} cannot be created ({error.strerror}). Remove what is there.") from error


def _record(root: StateRoot) -> None:
    try:
        record_place(root)
    except BadRoot as error:
        if getattr(error.__cause__, "errno", 0) not in (errno.ENOSPC, errno.EDQUOT):
            raise
        # A daemon must start on a full disk, because it is what deletes runs; the next start records the place.


def prepare_root(root: StateRoot, mounts: Path = Path("/proc/self/mounts")) -> None:
    """Create the folder itself and check that this user can keep databases in it, wherever it came from."""
    # With databases of its own elsewhere the folder itself may be shared by several machines.
    _check_filesystem(root.own or root.path, mounts)
    for path in (root.path, *([root.own] if root.own else [])):
        refuse_odd(path)
        refuse_foreign(path)
        _make(path)
        _close_to_others(path)
        _check_writable(path)


def mark_machine(root: StateRoot, mark: str) -> None:
    try:
        durable.write_bytes(root.machine_id, f"{mark}\n".encode())
    except OSError as error:
        raise BadRoot(f"{root.machine_id} cannot be written ({error.strerror}). Remove what is there.") from error


def machine_mark() -> str:
    """A text that identifies this machine; a hash, because /etc/machine-id should not be disclosed."""
    return hashlib.sha256(f"mosaic {_machine_id()}".encode()).hexdigest()[:32]


def filesystem_of(path: Path, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The type of the file system of `path`, which need not exist yet; empty when it is unknown."""
    return mount_of(path, mounts)[0]


def mount_of(path: Path, mounts: Path = Path("/proc/self/mounts")) -> tuple[str, str]:
    """Type and options of the mount that `path` is on, which need not exist yet; empty when they are unknown."""
    place = Path(os.path.realpath(path))
    found, kind, options = Path(), "", ""
    for line in _lines(mounts):
        words = [*line.split(" "), "", ""]
        point = Path(_unescape(words[1]))
        # The longest mount point wins, and of equal ones the last, which covers the others.
        if place.is_relative_to(point) and len(point.parts) >= len(found.parts):
            found, kind, options = point, words[2], words[3]
    return kind, options


def _check_filesystem(path: Path, mounts: Path) -> None:
    kind = filesystem_of(path, mounts)
    if kind in NETWORK_FILESYSTEMS:
        raise BadRoot(
            f"{path} is on a network file system ({kind}), where databases get damaged. {ADVICE} "
            "To keep only them on a local disk: mosaic root split /a/folder/on/a/local/disk"
        )


def _make(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = f"{error.strerror}: {error.filename}"
        raise BadRoot(f"{path} cannot be created or written ({why}). {ADVICE}") from error


def _close_to_others(path: Path) -> None:
    # It contains tokens and nonces; its mode keeps other users out, even if the files have permissive modes.
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)


def _check_writable(path: Path) -> None:
    # Tested by writing: permission bits do not show a read-only mount, and do not bind root.
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return  # a daemon must start on a full disk: it is needed to delete runs
        raise BadRoot(f"{path} cannot be written ({error.strerror}). {ADVICE}") from error


def _is_marked(root: StateRoot, mine: str) -> bool:
    """Whether the root has this machine's mark. BadRoot if it has another machine's, or something unreadable."""
    try:
        theirs = _mark(root)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", "") or "not a text"
        raise BadRoot(
            f"{root.machine_id} cannot be read ({why}). If {root.path} belongs to this machine, delete that file."
        ) from None
    if theirs not in ("", mine):
        raise BadRoot(
            f"{root.path} belongs to another machine, whose runs this one cannot see or end. {ADVICE} "
            "If it was copied here, run: mosaic root adopt --copy"
        )
    return bool(theirs)


def has_other_mark(root: StateRoot) -> bool:
    """Whether another machine made this root, as far as its mark can be read."""
    try:
        return _mark(root) not in ("", machine_mark())
    except (OSError, UnicodeDecodeError):
        return False


def _mark(root: StateRoot) -> str:
    try:
        return durable.read_bytes(root.machine_id, LARGEST_MARK).decode().strip()
    except FileNotFoundError:
        return ""


def _machine_id() -> str:
    for line in _lines(Path("/etc/machine-id")):
        if line.strip() and line.strip() != "uninitialized":
            return line.strip()
    node = uuid.getnode()
    # Without a network card, uuid returns a random number with this bit set: a different one in every process.
    is_random = bool(node >> 40 & 1)
    return socket.gethostname() + ("" if is_random else f" {node:012x}")


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []


def _unescape(text: str) -> str:
    # The kernel writes blanks and backslashes in mount points as octal escapes.
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
