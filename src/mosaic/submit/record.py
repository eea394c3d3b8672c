"""The files of a submitted run: its folder, config-{run_id}.json and worker-{run_id}.json."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from mosaic.model import durable
from mosaic.model.errors import BadConfig, StoreUnavailable, UnknownRun
from mosaic.model.failpoints import failpoint
from mosaic.model.run import RunConfig
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.submit.config import read_config


def record(root: StateRoot, config: RunConfig) -> RunDir:
    """Create the run's folder and write its config durably; on an error nothing remains."""
    rundir = root.run(config.area, config.run_id)
    try:
        # The folder must be new: MOSAIC does not write into an existing one, which may be a link.
        rundir.path.mkdir(mode=0o700)
    except FileExistsError as error:
        why = f"{rundir.path} already exists. Leave the id out to get a new one."
        raise BadConfig("metadata.run_id", why) from error
    except OSError as error:
        raise _unavailable(rundir, error) from error
    try:
        failpoint("submit.folder")
        _write(root, rundir, config)
    except OSError as error:
        with suppress(OSError):
            root.config_file(config.run_id).unlink()
        shutil.rmtree(rundir.path, ignore_errors=True)
        rundir.remove_control()
        raise _unavailable(rundir, error) from error
    return rundir


def write_worker_file(root: StateRoot, config: RunConfig, worker_id: str = "") -> Path:
    """Write the file that the worker gets as `--config`. The worker id is the one in the config unless given."""
    path = root.worker_file(config.run_id)
    durable.write_json(path, worker_document(config, worker_id))
    return path


def load(root: StateRoot, run_id: str, worker_name: str = "") -> RunConfig:
    """Read the validated config of a run back from its file: a run may wait longer than a daemon lives."""
    document = durable.read_json(root.config_file(run_id))
    if document is None:
        raise UnknownRun(run_id)
    return read_config(document, worker_name)


def worker_document(config: RunConfig, worker_id: str = "") -> dict[str, Any]:
    ours = {"run_id": config.run_id, "worker_id": worker_id or config.worker.worker_id}
    # At the front for readability, and again at the end because the user cannot choose these two.
    document = {**ours, **config.worker.config, **ours}
    document.setdefault("extras", {})
    return document


def _write(root: StateRoot, rundir: RunDir, config: RunConfig) -> None:
    rundir.make()
    if config.worker.script:
        rundir.config.mkdir(mode=0o700)
        durable.write_json(rundir.config / "base_config.json", worker_document(config))
        schedule = _curriculum(config)
        if schedule:  # otherwise a phase of the script may create one later
            durable.write_json(rundir.config / "curriculum_config.json", schedule)
    if config.worker.commands:
        # Here, so that the daemon and the holder always mean the same file, and miss it if something removes it.
        durable.write_bytes(rundir.commands, b"")
    durable.sync_folder(str(rundir.path.parent))
    # Before anything can start: a run without a control folder is taken for one of an older version.
    durable.sync_folder(str(rundir.control.parent))
    durable.write_json(root.config_file(config.run_id), dict(config.raw))


def _curriculum(config: RunConfig) -> Any:
    """The curriculum at the start of the script, if there is one."""
    extras = config.worker.config.get("extras")
    return extras.get("curriculum_schedule") if isinstance(extras, Mapping) else None


def _unavailable(rundir: RunDir, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"{rundir.path} cannot be written ({error.strerror}). Free some disk space and try again.")
