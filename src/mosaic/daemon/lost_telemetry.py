"""A finished run whose telemetry file was deleted: said in words, instead of read as a run without events."""

import os

from mosaic.model.errors import StoreFailed
from mosaic.model.run import RunRecord
from mosaic.model.rundir import RunDir


def why_lost(record: RunRecord, rundir: RunDir) -> str:
    """What happened to the file; empty if it is there, if its run is live, or if its worker never ran."""
    if not record.state.is_over:
        return ""  # an open file that loses its name is restored (ADR 23)
    try:
        size = os.lstat(rundir.telemetry).st_size
    except (FileNotFoundError, NotADirectoryError):
        size = -1
    except OSError:
        return ""  # its folder is closed: said elsewhere
    if size > 0 or not (os.path.lexists(rundir.exit) or record.origin):
        return ""
    if record.origin:
        again = f"Delete the run and import it again: mosaic rm {record.run_id}"
        return f"{rundir.telemetry} is {'empty' if size == 0 else 'missing'}: this run was imported. {again}"
    what = "is empty" if size == 0 else "is missing"
    return f"{rundir.telemetry} {what}: what this run had stored is lost. The rest of its folder can still be used."


def refuse_lost(record: RunRecord, rundir: RunDir) -> None:
    """StoreFailed if the telemetry of this run is lost."""
    if why := why_lost(record, rundir):
        raise StoreFailed(why)
