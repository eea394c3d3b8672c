"""The files of a submitted run: its folder, config-{run_id}.json and worker-{run_id}.json."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mosaic.model import durable
from mosaic.model.errors import BadConfig, StoreUnavailable, UnknownRun
from mosaic.model.failpoints import failpoint
from mosaic.model.folder import remove_folder
from mosaic.model.run import RunConfig
from mosaic.model.rundir import RunDir, StateRoot
from mosaic.submit.config import read_config

THREADS = 32


def record(root: StateRoot, config: RunConfig) -> RunDir:
    """Create the run's folder and write its config durably; on an error nothing remains."""
    return record_all(root, [config])[0]


def record_all(root: StateRoot, configs: Sequence[RunConfig]) -> list[RunDir]:
    """`record` for many runs: on an error nothing remains of any.

    In threads: the disk syncs many files at once in the time of a few.
    """
    rundirs = [root.run(config.area, config.run_id) for config in configs]
    made: list[RunDir] = []
    try:
        with _pool(len(configs)) as each:
            each(lambda rundir: made.append(_new_folder(rundir)), rundirs)
            failpoint("submit.folder")
            each(lambda pair: _write(*pair), list(zip(rundirs, configs, strict=True)))
            # Before anything can start: a run without a control folder is taken for one of an older version.
            _sync({rundir.path.parent for rundir in rundirs} | {rundir.control.parent for rundir in rundirs})
            each(lambda config: _write_config(root, config), configs)
            _sync({root.configs})
    except OSError as error:
        _erase(root, made)
        raise _unavailable(rundirs[0], error) from error
    except BaseException:
        _erase(root, made)
        raise
    return rundirs


@contextmanager
def _pool(count: int) -> Iterator[Callable[[Callable[[Any], None], Sequence[Any]], None]]:
    """A function that calls another for each of some items, in threads if there are many, and waits for all calls."""

    def one_by_one(work: Callable[[Any], None], items: Sequence[Any]) -> None:
        for item in items:
            work(item)

    def in_threads(work: Callable[[Any], None], items: Sequence[Any]) -> None:
        done = [pool.submit(work, item) for item in items]
        wait(done)
        for future in done:
            future.result()

    if count == 1:
        yield one_by_one
        return
    with ThreadPoolExecutor(min(count, THREADS), "record") as pool:
        yield in_threads


def _new_folder(rundir: RunDir) -> RunDir:
    try:
        # The folder must be new: MOSAIC does not write into an existing one, which may be a link.
        rundir.path.mkdir(mode=0o700)
    except FileExistsError as error:
        why = f"{rundir.path} already exists. Leave the id out to get a new one."
        raise BadConfig("metadata.run_id", why) from error
    return rundir


def _erase(root: StateRoot, rundirs: Sequence[RunDir]) -> None:
    for rundir in rundirs:
        with suppress(OSError):
            root.config_file(rundir.run_id).unlink()
        remove_folder(rundir.path)
        remove_folder(rundir.control)


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


def _write(rundir: RunDir, config: RunConfig) -> None:
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


def _write_config(root: StateRoot, config: RunConfig) -> None:
    durable.write_json(root.config_file(config.run_id), dict(config.raw), syncs_folder=False)


def _sync(folders: Iterable[Path]) -> None:
    for folder in folders:
        durable.sync_folder(str(folder))


def _curriculum(config: RunConfig) -> Any:
    """The curriculum at the start of the script, if there is one."""
    extras = config.worker.config.get("extras")
    return extras.get("curriculum_schedule") if isinstance(extras, Mapping) else None


def _unavailable(rundir: RunDir, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"{rundir.path} cannot be written ({error.strerror}). Free some disk space and try again.")
