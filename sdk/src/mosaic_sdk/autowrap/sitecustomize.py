"""Runs at the start of every Python of a worker: MOSAIC puts this folder first in the worker's PYTHONPATH.

Self-contained, because the worker's environment may have neither mosaic_sdk nor a Python newer than 3.8. It must not be
felt: it never raises, imports nothing heavy, and steps aside for the sitecustomize it hides.
"""

import os
import sys


def _keep_lines_whole():
    """stdout is line-buffered: each line of each process is one write to the spool, which no other line can split."""
    out = sys.stdout
    if out is None:
        return
    # write_through is `python -u`, which would write every piece of a print() by itself.
    out.reconfigure(line_buffering=True, write_through=False)
    # Without this a line over 8 kB is written apart from its newline.
    out._CHUNK_SIZE = 1 << 20


def _print_stacks_on_sigusr2():
    """The autopsy of a hung run: SIGUSR2 prints the stacks of all threads to stderr."""
    import _signal  # not `signal`: its enums take longer to import than all the rest here
    import faulthandler

    # Whoever started us has plans of its own for the signal if it is not at its default.
    if _signal.getsignal(_signal.SIGUSR2) == _signal.SIG_DFL:
        faulthandler.register(_signal.SIGUSR2, file=2, all_threads=True)


# What is done to a worker's interpreter, in order. The gym.make hook of FastLane gets its place here.
_PREPARATIONS = (_keep_lines_whole, _print_stacks_on_sigusr2)


def _prepare():
    for preparation in _PREPARATIONS:
        try:
            preparation()
        except Exception:
            pass  # the script matters more than any of these


def _step_aside():
    """Import the sitecustomize that ours hides, as if we were not there; its errors are its own."""
    ours = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != ours]
    this = sys.modules.pop(__name__)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        sys.modules.setdefault(__name__, this)


if os.environ.get("MOSAIC_RUN_ID"):
    _prepare()
if __name__ == "sitecustomize":
    _step_aside()
