"""Checkpoints: a folder with the library's own files.

    checkpoint-000000050000/
    ├── model.zip             model.save(); it contains pickles, like the two others
    ├── replay_buffer.pkl     of off-policy algorithms, if `save_replay_buffer` is set
    ├── normalizer.pkl        the statistics of VecNormalize, if `normalize` is set
    └── commit.json           written last, with the settings in force

Pickles can run code, so a checkpoint is loaded only from the run folders of the same MOSAIC (or of this run, for a
worker started by hand), unless `trust_checkpoint` is set.
"""

import os
from pathlib import Path
from typing import Any

from mosaic_sdk import checkpoints, emit
from mosaic_sdk.checkpoints import Checkpoint, CheckpointError, Checkpoints
from mosaic_sdk.evaluation import Evaluation
from mosaic_sdk.files import atomic_file
from mosaic_sdk.names import BEST, CHECKPOINTS, COMMIT_FILE, WorkerEnv

from stable_baselines3_worker import WORKER
from stable_baselines3_worker.config import StableBaselines3Config

FORMAT = 1
MODEL, BUFFER, NORMALIZER = "model.zip", "replay_buffer.pkl", "normalizer.pkl"


def save(model: Any, config: StableBaselines3Config) -> str:
    """Save, report, and remove old ones; returns the folder."""
    folder = checkpoint_folder()
    path = _write(model, config, folder)
    emit.checkpoint_saved(path, step=model.num_timesteps)
    Checkpoints(folder).prune(config.keep_checkpoints)
    return path


def save_best(model: Any, config: StableBaselines3Config, found: Evaluation) -> None:
    folder, step, score = checkpoint_folder(), model.num_timesteps, found.mean_return
    path = _write(model, config.replace(save_replay_buffer=False), folder / BEST)
    Checkpoints(folder).keep_best(path, step=step, score=score, seeds=found.seeds)
    emit.checkpoint_saved(path, step=step, best=True, score=score)


def find(config: StableBaselines3Config) -> Checkpoint:
    """The checkpoint of `policy_path`. CheckpointError if it is missing, unsuitable or not trusted."""
    found = checkpoints.find(config.policy_path)
    if not found.about:
        raise CheckpointError(f"{found.path} is not a checkpoint of this worker: it has no commit.json.")
    given = {name: getattr(config, name) for name in ("env_id", "algo") if name in config.given}
    found.require(worker=WORKER, format=FORMAT, **given)
    if not config.trust_checkpoint and not _is_ours(Path(found.path)):
        raise CheckpointError(
            f"{found.path} is outside MOSAIC's run folders. It contains pickles, which can run any code when they are "
            "loaded. If you trust its source, set trust_checkpoint=true."
        )
    return found


def part(found: Checkpoint, name: str) -> str:
    """The path of one of its files; empty if it has none."""
    path = os.path.join(found.path, name)
    return path if os.path.exists(path) else ""


def checkpoint_folder() -> Path:
    return Path(os.environ.get(WorkerEnv.CHECKPOINT_DIR) or CHECKPOINTS)


def _write(model: Any, config: StableBaselines3Config, folder: Path) -> str:
    path, step = folder / f"checkpoint-{model.num_timesteps:012d}", model.num_timesteps
    if (path / COMMIT_FILE).exists():
        return str(path)  # the training was stopped before the next step
    if path.exists():
        checkpoints.remove(path)  # an earlier process did not complete it
    path.mkdir(parents=True)
    with atomic_file(path / MODEL) as file:
        model.save(file)
    if config.save_replay_buffer and getattr(model, "replay_buffer", None) is not None:
        with atomic_file(path / BUFFER) as file:
            model.save_replay_buffer(file)
    normalize = model.get_vec_normalize_env()
    if normalize is not None:
        normalize.save(str(path / NORMALIZER))
    checkpoints.commit(
        path,
        worker=WORKER,
        format=FORMAT,
        step=step,
        env_id=config.env_id,
        algo=config.algo,
        settings=config.to_dict(),
    )
    return str(path)


def _is_ours(path: Path) -> bool:
    run = Path(os.environ.get(WorkerEnv.RUN_DIR) or ".").resolve()
    runs = run.parent.parent if run.parent.parent.name == "trainer" else run
    return path.resolve().is_relative_to(runs)
