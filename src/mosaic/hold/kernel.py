"""Linux system calls that Python 3.11 does not offer. Each raises OSError with the name of the call, or succeeds."""

import ctypes
import os
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000

_CAP_DAC_OVERRIDE = 1
_CAP_SETPCAP = 8
_CAP_SYS_ADMIN = 21
_CAPABILITY_VERSION_3 = 0x20080522
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_MS_RDONLY = 1
_MS_NOSUID_NODEV_NOEXEC = 2 | 4 | 8
_MS_REMOUNT = 0x20
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_SLAVE = 0x80000
_MNT_DETACH = 2
_FALLOC_FL_KEEP_SIZE = 1
_IN_MODIFY = 2

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
_libc.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def map_current_user(uid: int, gid: int) -> None:
    """Keep the same user in a new user namespace: `uid` and `gid` are those from before the unshare."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def mount_own_proc() -> None:
    """Mount a /proc of this pid namespace, visible only inside this mount namespace."""
    # Slave, not private: later mounts of the host (a home, a disk) still appear here, and ours do not leave.
    _mount("none", "/", _MS_REC | _MS_SLAVE, "mount --make-rslave /")
    _mount("proc", "/proc", _MS_NOSUID_NODEV_NOEXEC, "mount /proc", kind=b"proc")


def mount_empty(path: str) -> None:
    """Cover a folder by an empty one, in this mount namespace."""
    _mount("mosaic", path, _MS_NOSUID_NODEV_NOEXEC, "mount tmpfs", kind=b"tmpfs", options=b"mode=0700,size=64k")


def bind(folder: int, path: str) -> None:
    """Show an open folder at `path`, with what is mounted below it."""
    _mount(f"/proc/self/fd/{folder}", path, _MS_BIND | _MS_REC, "mount --bind")


def make_read_only(path: str) -> None:
    # In a user namespace, a remount that does not repeat the flags of the original is refused.
    kept = os.statvfs(path).f_flag & (_MS_RDONLY | _MS_NOSUID_NODEV_NOEXEC)
    _mount("none", path, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | kept, "mount -o remount,ro")


def unmount(path: str) -> None:
    _check(_libc.umount2(os.fsencode(path), _MNT_DETACH), "umount")


def give_up_mounting() -> None:
    """Neither this process nor a program that it executes can change mounts from here on, even as root."""
    bit = 1 << _CAP_SYS_ADMIN
    sets = _capabilities()
    if sets["CapBnd"] & bit:
        _prctl(_PR_CAPBSET_DROP, _CAP_SYS_ADMIN, "PR_CAPBSET_DROP")
    # Also our own, because root may trace us, and the inheritable one, which root's exec gains all the same.
    _set_capabilities(*(sets[name] & ~bit for name in ("CapEff", "CapPrm", "CapInh")))


def set_subreaper(on: bool) -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, int(on), "PR_SET_CHILD_SUBREAPER")


def die_with_parent() -> None:
    """Have the kernel send SIGKILL to this process as soon as its parent dies."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, "PR_SET_PDEATHSIG")


def set_name(name: str) -> None:
    """Set the name that ps shows for a process that forked without exec."""
    text = ctypes.create_string_buffer(name.encode())
    _prctl(_PR_SET_NAME, ctypes.addressof(text), "PR_SET_NAME")


def drop_dac_override() -> None:
    """Programs executed from here on are bound by file modes, even as root."""
    if os.geteuid() == 0:
        try:
            _prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, "PR_CAPBSET_DROP")
        except PermissionError:
            pass  # can_drop_dac_override returned False, so the spool is behind a pipe


def can_drop_dac_override() -> bool:
    """Whether mode 0400 keeps a program that we execute from writing."""
    if os.geteuid() != 0:
        return True
    sets = _capabilities()
    droppable = bool(sets["CapEff"] & 1 << _CAP_SETPCAP) or not sets["CapBnd"] & 1 << _CAP_DAC_OVERRIDE
    # Root's exec gains inheritable capabilities despite the bounding set (some container engines set them).
    return droppable and not sets["CapInh"] & 1 << _CAP_DAC_OVERRIDE


def reserve(fd: int, start: int, length: int) -> None:
    """Allocate disk blocks for [start, start + length) of a file without changing its size."""
    _check(_libc.fallocate(fd, _FALLOC_FL_KEEP_SIZE, start, length), "fallocate")


def watch_writes(paths: "list[str]") -> int:
    """A descriptor that becomes readable when one of these files is written to."""
    fd: int = _check(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "inotify_init1")
    try:
        for path in paths:
            _check(_libc.inotify_add_watch(fd, os.fsencode(path), _IN_MODIFY), "inotify_add_watch")
    except OSError:
        os.close(fd)
        raise
    return fd


def _mount(
    source: str, target: str, flags: int, call: str, kind: "bytes | None" = None, options: "bytes | None" = None
) -> None:
    _check(_libc.mount(os.fsencode(source), os.fsencode(target), kind, ctypes.c_ulong(flags), options), call)


def _set_capabilities(effective: int, permitted: int, inheritable: int) -> None:
    halves = [part >> shift & 0xFFFFFFFF for shift in (0, 32) for part in (effective, permitted, inheritable)]
    header, data = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)(*halves)
    _check(_libc.capset(header, data), "capset")


def _prctl(option: int, value: int, name: str) -> None:
    _check(_libc.prctl(option, value, 0, 0, 0), name)


def _check(result: int, call: str) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{call}: {os.strerror(number)}")
    return result


def _capabilities() -> "dict[str, int]":
    with open("/proc/self/status") as file:
        pairs = [line.split(":") for line in file if line.startswith("Cap")]
    return {name: int(value, 16) for name, value in pairs}
