"""What a worker sees of trainer/, in the mount namespace of its tree: nothing that daemon and holder believe (ADR 21).

trainer/                          an empty, read-only tmpfs: no control/, registry.db, daemon.token, daemon.sock
  configs/                        read-only
  runs/ custom_scripts/ evals/    read-only: the checkpoints of other runs can be loaded
    {run_id}/                     the run's own folder, writable
the folder of `mosaic root split` is an empty one, too
"""

import os

from mosaic.hold import kernel
from mosaic.model.held import HIDDEN, VISIBLE
from mosaic.model.rundir import AREAS, RunDir, StateRoot

_SHOWN = ("configs", *AREAS)


def hide(run: RunDir) -> str:
    """Hide what a worker must not see from this mount namespace; returns what was achieved, in words.

    A machine that does not allow it gets its run all the same: the proof of its end does not rest on this alone.
    """
    try:
        if run.control.is_symlink():
            raise OSError("the run is from an older version")
        _cover(run)
        # For root: what can be unmounted is not hidden. Other users lose all capabilities at the worker's exec.
        kernel.give_up_mounting()
    except OSError as error:
        return f"{VISIBLE} ({error.strerror or error})"
    return HIDDEN


def _cover(run: RunDir) -> None:
    own = StateRoot(run.control.parent.parent.parent).own
    if own is None or not own.is_dir():  # on a node of a cluster it is another machine's
        _cover_trainer(run)
        return
    kernel.mount_empty(str(own))
    try:
        kernel.make_read_only(str(own))
        _cover_trainer(run)
    except OSError:
        kernel.unmount(str(own))
        raise


def _cover_trainer(run: RunDir) -> None:
    trainer = str(run.control.parent.parent)
    shown = {f"{trainer}/{name}": _open(f"{trainer}/{name}") for name in _SHOWN if os.path.isdir(f"{trainer}/{name}")}
    own = _open(str(run.path))
    try:
        kernel.mount_empty(trainer)
        try:
            _fill(trainer, shown, str(run.path), own)
        except OSError:
            kernel.unmount(trainer)  # with all that is mounted in it
            raise
    finally:
        for fd in (own, *shown.values()):
            os.close(fd)


def _fill(trainer: str, shown: "dict[str, int]", own_path: str, own: int) -> None:
    for path, fd in shown.items():
        os.mkdir(path, 0o700)
        kernel.bind(fd, path)
        kernel.make_read_only(path)
    kernel.bind(own, own_path)
    kernel.make_read_only(trainer)


def _open(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
