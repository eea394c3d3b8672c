"""Gives every run of an older version its control folder (ADR 21).

Older versions kept the control files in the run's own folder. A run that one of them started may be live, and its
holder goes on there: its control folder is a link to the run's folder. A run that has not started gets its own folder.
A run of this version has its control folder before it has a row in the registry, so none of them is ever linked. If one
has output and no control folder, that was deleted: a new, empty one would say that nothing was started.
"""

import os
from contextlib import suppress

from mosaic.model import durable
from mosaic.model.rundir import AREAS, RunDir, StateRoot
from mosaic.model.ulid import is_ulid

# What an older holder or daemon leaves behind once a worker may have been started.
_STARTED = ("launch.json", "owner.lock", "started.json", "exit.json")


def give_control_folders(root: StateRoot) -> None:
    """Called at the start of a daemon, before it looks at any run."""
    known = set(os.listdir(root.control))
    for area in AREAS:
        for name in os.listdir(root.area(area)):
            if name not in known and is_ulid(name):
                give_control_folder(root.run(area, name))
    durable.sync_folder(str(root.control))


def give_control_folder(rundir: RunDir) -> None:
    """Called also by a tailer: its holder may restart it in this version before a daemon of this version runs."""
    if os.path.lexists(rundir.control) or not rundir.path.is_dir():
        return
    rundir.control.parent.mkdir(mode=0o700, exist_ok=True)
    if any(os.path.lexists(rundir.path / name) for name in _STARTED):
        with suppress(FileExistsError):
            os.symlink(os.path.relpath(rundir.path, rundir.control.parent), rundir.control)
        return
    if os.path.lexists(rundir.stdout):
        return
    os.mkdir(rundir.control, 0o700)
    commands = rundir.path / rundir.commands.name
    if os.path.lexists(commands):
        os.rename(commands, rundir.commands)
