"""The toy training's state on disk: small JSON files that are there as a whole or not at all.

checkpoints/checkpoint-000000000500.json    after 500 steps
checkpoints/best/state.json, best.json      the state with the best evaluation, and its score
"""

import json
import os
from typing import Any, Dict, List

from mosaic_sdk.config import ConfigError
from mosaic_sdk.names import WorkerEnv

FORMAT = 1
_KEYS = ("step", "skill", "horizon", "noise", "episode_index", "episode_return", "last_return")


class Checkpoints:
    """Where a run's states go."""

    def __init__(self) -> None:
        folder = os.environ.get(WorkerEnv.RUN_DIR, ".")
        self.folder = os.environ.get(WorkerEnv.CHECKPOINT_DIR) or os.path.join(folder, "checkpoints")

    def save(self, state: Dict[str, Any]) -> str:
        """Write a state; its path."""
        path = os.path.join(self.folder, f"checkpoint-{state['step']:012d}.json")
        write_whole(path, {"format": FORMAT, **state})
        return path

    def save_best(self, state: Dict[str, Any], score: float, seeds: List[int]) -> str:
        """Write a state as the best so far, and then what makes it so."""
        folder = os.path.join(self.folder, "best")
        path = os.path.join(folder, "state.json")
        write_whole(path, {"format": FORMAT, **state})
        told = {"path": "state.json", "step": state["step"], "score": score, "episodes": len(seeds), "seeds": seeds}
        write_whole(os.path.join(folder, "best.json"), {"version": 1, **told})
        return path


def load(path: str) -> Dict[str, Any]:
    """A state that was saved; ConfigError, in one sentence, for anything else."""
    try:
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
    except OSError as error:
        raise ConfigError(f"checkpoint: {path} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise ConfigError(f"checkpoint: {path} is damaged. Use an older one.") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT or any(key not in state for key in _KEYS):
        raise ConfigError(f"checkpoint: {path} is not a checkpoint of the toy worker.")
    return state


def write_whole(path: str, document: Dict[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temp = f"{path}.{os.getpid()}.tmp"
    with open(temp, "w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temp, path)
