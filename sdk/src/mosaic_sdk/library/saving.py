"""Checkpoints of a library's worker: saved with the settings in force, and loaded only where that is safe."""

import os
from typing import Any, Callable, Optional

from mosaic_sdk import checkpoints, emit
from mosaic_sdk.checkpoints import Checkpoint, CheckpointError, Checkpoints
from mosaic_sdk.evaluation import Evaluation
from mosaic_sdk.library.settings import LibrarySettings
from mosaic_sdk.names import BEST, CHECKPOINTS, COMMIT_FILE, WorkerEnv

FORMAT = 1  # of what a checkpoint holds, unless a worker says otherwise


def checkpoint_folder() -> str:
    return os.path.abspath(os.environ.get(WorkerEnv.CHECKPOINT_DIR) or os.path.join(run_folder(), CHECKPOINTS))


def run_folder() -> str:
    """The run's folder; the working directory for a worker that was started by hand."""
    return os.path.abspath(os.environ.get(WorkerEnv.RUN_DIR) or ".")


def save(
    write: Callable[[str], None],
    config: LibrarySettings,
    *,
    worker: str,
    step: int,
    format: int = FORMAT,
    suffix: str = "",
    best: Optional[Evaluation] = None,
    **about: Any,
) -> str:
    """Save, report, and remove old ones; returns the path.

    `write` gets the path: of an empty folder, or of a file to create if there is a `suffix`. `best`: the evaluation
    that makes it the best one; it goes to `checkpoints/best`. `about`: further keys of commit.json.
    """
    folder = os.path.join(checkpoint_folder(), BEST) if best else checkpoint_folder()
    path = os.path.join(folder, f"checkpoint-{step:012d}{suffix}")
    if not _is_committed(path):  # else the training was stopped before the next step
        checkpoints.remove(path)  # an earlier process did not complete it
        os.makedirs(folder if suffix else path, exist_ok=True)
        write(path)
        about.update(env_id=config.env_id, algo=config.algo, settings=config.to_dict())
        checkpoints.commit(path, worker=worker, format=format, step=step, **about)
    if best:
        Checkpoints(checkpoint_folder()).keep_best(path, step=step, score=best.mean_return, seeds=best.seeds)
        emit.checkpoint_saved(path, step=step, best=True, score=best.mean_return)
    else:
        emit.checkpoint_saved(path, step=step)
        Checkpoints(folder).prune(config.keep_checkpoints)
    return path


def find(config: LibrarySettings, *, worker: str, format: int = FORMAT, has_pickles: bool = False) -> Checkpoint:
    """The checkpoint of `policy_path`. CheckpointError if it is missing, damaged, unsuitable or not trusted.

    `has_pickles`: loading it can run code. Then it must be in the run folders of the same MOSAIC (of this run, for a
    worker started by hand), unless the setting `trust_checkpoint` is true.
    """
    found = checkpoints.find(config.policy_path)
    if not found.about:
        raise CheckpointError(f"{found.path} is not a checkpoint of this worker: it has no {COMMIT_FILE}.")
    # A default says nothing about which checkpoint is expected.
    given = {name: getattr(config, name) for name in ("env_id", "algo") if name in config.given}
    found.require(worker=worker, format=format, **given)
    damage = found.damage()
    if damage:
        raise CheckpointError(f"{found.path} is damaged: {damage}. Use an older one.")
    if has_pickles and not getattr(config, "trust_checkpoint", False) and not _is_ours(found.path):
        raise CheckpointError(
            f"{found.path} is outside MOSAIC's run folders. It contains pickles, which can run any code when they are "
            "loaded. If you trust its source, set trust_checkpoint=true."
        )
    return found


def refuse_finished(found: Checkpoint, total_timesteps: int) -> None:
    """CheckpointError if a training that is resumed from it has no step left."""
    if (found.step or 0) >= total_timesteps:
        raise CheckpointError(
            f"{found.path} is at step {found.step}, but total_timesteps is {total_timesteps}: "
            "nothing is left to train. Increase total_timesteps."
        )


def _is_committed(path: str) -> bool:
    return os.path.exists(os.path.join(path, COMMIT_FILE)) or os.path.exists(f"{path}.{COMMIT_FILE}")


def _is_ours(path: str) -> bool:
    run = os.path.realpath(run_folder())
    trainer = os.path.dirname(os.path.dirname(run))
    runs = trainer if os.path.basename(trainer) == "trainer" else run
    return os.path.commonpath([runs, os.path.realpath(path)]) == runs
