"""The daemon's file descriptors: as many as it may have, and a few spare ones before it starts a run."""

import contextlib
import os
import resource

from mosaic.model.shortage import shortage_of

MOST = 1 << 20  # containers have hard limits of a billion, for which some libraries allocate tables
SPARE = 32  # a start opens about ten, and clients connect meanwhile


def raise_limit() -> int:
    """Raise the soft limit as far as the hard one allows. Returns the old one, which is what workers get: programs that
    use select() fail with descriptors above 1,023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft


def find_shortage() -> str:
    """What is missing if the daemon cannot open a few more files now; empty if it can.

    Asked before a run is claimed: many functions take a folder that they cannot open for an empty one, and the run
    would fail because its worker is "not installed".
    """
    with contextlib.ExitStack() as opened:
        try:
            for _ in range(SPARE):
                opened.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            return shortage_of(error)
    return ""
