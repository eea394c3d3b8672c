"""Descriptors, processes and memory that a user or the machine has run out of: a reason to wait, not to fail.

Imports next to nothing, because the holder imports it.
"""

import errno

EXIT_CODE = 75  # of a holder that could not start its worker for now (EX_TEMPFAIL)
_MEANINGS = {
    errno.EMFILE: "free file descriptors: too many open files in the daemon (see: ulimit -n)",
    errno.ENFILE: "free file descriptors: too many open files on this machine (see: sysctl fs.file-max)",
    errno.EAGAIN: "a free process: this user or this container has too many (see: ulimit -u)",
    errno.ENOMEM: "free memory: this machine cannot start another process now",
}


def shortage_of(error: BaseException) -> str:
    """What is missing, as in "waiting for …"; empty if the error has another reason."""
    if isinstance(error, OSError) and error.errno in _MEANINGS:
        return _MEANINGS[error.errno]
    # Python's own words for a pthread_create that failed with EAGAIN.
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return _MEANINGS[errno.EAGAIN]
    return ""


def is_shortage(code: object) -> bool:
    """Whether this errno means a shortage."""
    return code in _MEANINGS
