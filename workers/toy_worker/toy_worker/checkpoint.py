"""The toy training's state on disk: small JSON files.

checkpoints/checkpoint-000000000500.json    after 500 steps
checkpoints/best/state.json, best.json      the state with the best evaluation, and its score
"""

import os
from typing import Any, Dict, List

from mosaic_sdk import checkpoints
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.files import read_json, write_json
from mosaic_sdk.names import BEST, CHECKPOINTS, WorkerEnv

from toy_worker.config import ToyConfig
from toy_worker.learning import ENV_ID

WORKER, FORMAT = "toy", 1
_KEYS = ("step", "skill", "horizon", "noise", "episode_index", "episode_return", "last_return")


class Checkpoints:
    """The folder that a run's states are saved in."""

    def __init__(self, config: ToyConfig) -> None:
        self._config = config
        folder = os.environ.get(WorkerEnv.RUN_DIR, ".")
        self.folder = os.environ.get(WorkerEnv.CHECKPOINT_DIR) or os.path.join(folder, CHECKPOINTS)

    def save(self, state: Dict[str, Any]) -> str:
        """Write a state; returns its path."""
        return self._write(os.path.join(self.folder, f"checkpoint-{state['step']:012d}.json"), state)

    def save_best(self, state: Dict[str, Any], score: float, seeds: List[int]) -> str:
        """Write a state as the best one so far; returns its path."""
        path = self._write(os.path.join(self.folder, BEST, "state.json"), state)
        return checkpoints.Checkpoints(self.folder).keep_best(path, step=state["step"], score=score, seeds=seeds)

    def _write(self, path: str, state: Dict[str, Any]) -> str:
        write_json(path, {"format": FORMAT, **state})
        settings = self._config.to_dict()
        about = {"worker": WORKER, "format": FORMAT, "step": state["step"], "env_id": ENV_ID, "settings": settings}
        return checkpoints.commit(path, **about).path


def load(path: str) -> Dict[str, Any]:
    """A saved state. CheckpointError, in one sentence, for any other file."""
    checkpoints.read(path).require(worker=WORKER, format=FORMAT)
    try:
        state = read_json(path)
    except OSError as error:
        raise CheckpointError(f"checkpoint: {path} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise CheckpointError(f"checkpoint: {path} is damaged. Use an older one.") from None
    if state.get("format") != FORMAT or any(key not in state for key in _KEYS):
        raise CheckpointError(f"checkpoint: {path} is not a checkpoint of the toy worker.")
    return state
