"""Checkpoints: a folder with RLlib's own files.

    checkpoint-000000050000/
    ├── learner_group/learner/rl_module/POLICY/      the networks; all that an evaluation loads
    ├── learner_group/learner/state.pkl              optimizers
    ├── env_runner/  algorithm_state.pkl             connectors, counters
    └── commit.json                                  written last, with the settings in force

The replay buffer is not part of it. Pickles can run code, so a checkpoint is loaded only from the run folders of the
same MOSAIC (or of this run, for a worker started by hand), unless `trust_checkpoint` is set.
"""

import os
from pathlib import Path
from typing import Any

from mosaic_sdk import checkpoints, emit
from mosaic_sdk.checkpoints import Checkpoint, CheckpointError, Checkpoints
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

from ray_worker import WORKER
from ray_worker.config import RayWorkerConfig

FORMAT = 1
MODULES = Path("learner_group", "learner", "rl_module")


def save(algorithm: Any, config: RayWorkerConfig, step: int, episodes: int) -> str:
    """Save, report, and remove old ones; returns the folder."""
    folder = checkpoint_folder()
    path = folder / f"checkpoint-{step:012d}"
    if path.exists():
        checkpoints.remove(path)  # an incomplete one, or one of the same step
    path.mkdir(parents=True)
    algorithm.save_to_path(str(path))
    about: dict[str, Any] = {"env_id": config.env_id, "algo": config.algo, "settings": config.to_dict()}
    checkpoints.commit(path, worker=WORKER, format=FORMAT, step=step, episodes=episodes, **about)
    emit.checkpoint_saved(path, step=step)
    Checkpoints(folder).prune(config.keep_checkpoints)
    return str(path)


def find(config: RayWorkerConfig) -> Checkpoint:
    """The checkpoint of `policy_path`. CheckpointError if it is missing, damaged, unsuitable or not trusted."""
    found = checkpoints.find(config.policy_path)
    if not found.about:
        raise CheckpointError(f"{found.path} is not a checkpoint of this worker: it has no commit.json.")
    given = {name: getattr(config, name) for name in ("env_id", "algo") if name in config.given}
    found.require(worker=WORKER, format=FORMAT, **given)
    damage = found.damage()
    if damage:
        raise CheckpointError(f"{found.path} is damaged: {damage}. Use an older one.")
    if not config.trust_checkpoint and not _is_ours(Path(found.path)):
        raise CheckpointError(
            f"{found.path} is outside MOSAIC's run folders. It contains pickles, which can run any code when they are "
            "loaded. If you trust its source, set trust_checkpoint=true."
        )
    return found


def modules_in(found: Checkpoint) -> dict[str, Path]:
    """The folder of each policy's network."""
    home = Path(found.path) / MODULES
    return {path.name: path for path in sorted(home.iterdir()) if path.is_dir()} if home.is_dir() else {}


def checkpoint_folder() -> Path:
    return Path(os.environ.get(WorkerEnv.CHECKPOINT_DIR) or CHECKPOINTS).resolve()


def _is_ours(path: Path) -> bool:
    run = Path(os.environ.get(WorkerEnv.RUN_DIR) or ".").resolve()
    runs = run.parent.parent if run.parent.parent.name == "trainer" else run
    return path.resolve().is_relative_to(runs)
