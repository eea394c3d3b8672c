"""Checkpoints of a running script: begun from one, saved to others."""

from pathlib import Path
from typing import Any

from mosaic_sdk import emit

from cleanrl_worker import UPSTREAM_VERSION
from cleanrl_worker.checkpoints import Checkpoint, CheckpointError, load_checkpoint, save_checkpoint
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.state import State
from cleanrl_worker.wrappers.schedule import read_schedule


def load_start(path: str) -> Checkpoint:
    """The checkpoint that a training is to go on from."""
    found = load_checkpoint(path)
    if not found.algo:
        raise CheckpointError(
            f"{found.path} holds a network's weights alone; a training goes on from checkpoint-*.pt only."
        )
    return found


def check_start(start: Checkpoint, config: CleanRLWorkerConfig) -> None:
    """CheckpointError unless the run is the checkpoint's and has something left to do."""
    # A curriculum brings its own environments; whether they fit is seen when they are made.
    start.require(algo=config.algo, env_id="" if config.curriculum_schedule else config.env_id)
    if start.global_step >= config.total_timesteps:
        raise CheckpointError(
            f"{start.path} is at step {start.global_step}, and total_timesteps is {config.total_timesteps}: "
            "nothing is left to train. Raise total_timesteps."
        )


class Keeper:
    """Keeps the newest `keep_checkpoints` of a run, and begins it from `start`, if there is one."""

    def __init__(
        self,
        config: CleanRLWorkerConfig,
        script: dict[str, Any],
        changed: frozenset[str],
        folder: Path,
        start: Checkpoint | None = None,
    ) -> None:
        self.config = config
        self.folder = folder
        self.saved_turn: int | None = None
        self._state = State(script, changed, config.checkpoint_buffer_mb)
        self._script = script
        self._stages = read_schedule(config.curriculum_schedule) if config.curriculum_schedule else ()
        self._files: "list[Path]" = []
        self._start = start

    def begin(self) -> int | None:
        """All is made: put the checkpoint's state in; returns the turn to go on with."""
        self._state.note_names()
        if self._start is None:
            return None
        lost = self._state.restore(self._start)
        emit.stdout().checkpoint_loaded(self._start.path, step=self._start.global_step, not_carried_on=lost)
        return self._start.loop

    @property
    def goal(self) -> str:
        """The environment that the training is for; in a curriculum that of the last stage."""
        return self._stages[-1].env_id if self._stages else self.config.env_id

    def network(self) -> dict[str, Any]:
        """As much of the state as it takes to act: keys of a Checkpoint."""
        return self._state.network()

    def save(self, turn: int, step: int, is_whole: bool = True) -> Path:
        path, left_out = self.write(self.folder, turn, step, is_whole)
        self.saved_turn = turn
        emit.stdout().checkpoint_saved(path, step=step, left_out=left_out)
        self._forget_old(path)
        return path

    def write(self, folder: Path, turn: int, step: int, is_whole: bool = True) -> tuple[Path, list[str]]:
        """A checkpoint of the training as it is; returns its file and what could not be kept."""
        state = self._state.capture()
        if not is_whole:
            state["envs"] = []
            state["left_out"].append("the rest of a turn: it was stopped between two safe points, and begins it again")
            state["counters"]["global_step"] = step
        path = save_checkpoint(
            folder,
            {
                **state,
                "algo": self.config.algo,
                "env_id": self._env_id(),
                "curriculum": [stage.to_dict() for stage in self._stages],
                "global_step": step,
                "loop": turn,
                "upstream": UPSTREAM_VERSION,
            },
        )
        return path, state["left_out"]

    def _env_id(self) -> str:
        """The environment that is trained on now; in a curriculum that of the current stage."""
        return self._stages[self._script["curriculum_stage"]].env_id if self._stages else self.config.env_id

    def _forget_old(self, newest: Path) -> None:
        self._files = [path for path in self._files if path != newest] + [newest]
        while len(self._files) > self.config.keep_checkpoints:
            self._files.pop(0).unlink(missing_ok=True)
