"""Checkpoints of a running script: it starts from one and saves others."""

from pathlib import Path
from typing import Any

from mosaic_sdk import checkpoints, emit
from mosaic_sdk.checkpoints import CheckpointError

from cleanrl_worker import UPSTREAM_VERSION
from cleanrl_worker.checkpoints import PATTERN, Checkpoint, load_checkpoint, save_checkpoint
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.state import State
from cleanrl_worker.wrappers.schedule import read_schedule


def load_start(path: str) -> Checkpoint:
    """The checkpoint that a training resumes from."""
    found = load_checkpoint(path)
    if not found.algo:
        raise CheckpointError(
            f"{found.path} holds only a network's weights. A training can only be resumed from a {PATTERN}."
        )
    return found


def check_start(start: Checkpoint, config: CleanRLWorkerConfig) -> None:
    """CheckpointError unless the checkpoint belongs to this training and has steps left to train."""
    # A curriculum has its own environments. Whether they fit is checked when they are created.
    start.require(algo=config.algo, env_id="" if config.curriculum_schedule else config.env_id)
    if start.global_step >= config.total_timesteps:
        raise CheckpointError(
            f"{start.path} is at step {start.global_step}, but total_timesteps is {config.total_timesteps}: "
            "nothing is left to train. Increase total_timesteps."
        )


class Keeper:
    """Saves checkpoints, keeps the newest `keep_checkpoints`, and restores `start`, if there is one."""

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
        """Restore the checkpoint once everything is set up; returns the turn to resume with."""
        self._state.note_names()
        if self._start is None:
            return None
        lost = self._state.restore(self._start)
        emit.stdout().checkpoint_loaded(self._start.path, step=self._start.global_step, not_carried_on=lost)
        return self._start.loop

    @property
    def goal(self) -> str:
        """The environment that the training is for; in a curriculum the last stage's."""
        return self._stages[-1].env_id if self._stages else self.config.env_id

    def network(self) -> dict[str, Any]:
        """The part of the state that is needed to act: keys of a Checkpoint."""
        return self._state.network()

    def save(self, turn: int, step: int, is_whole: bool = True) -> Path:
        path, left_out = self.write(self.folder, turn, step, is_whole)
        self.saved_turn = turn
        emit.stdout().checkpoint_saved(path, step=step, left_out=left_out)
        self._remove_old(path)
        return path

    def write(self, folder: Path, turn: int, step: int, is_whole: bool = True) -> tuple[Path, list[str]]:
        """Save the current state; returns the file and what could not be saved."""
        state = self._state.capture()
        if not is_whole:
            state["envs"] = []
            state["left_out"].append("part of an iteration: it was stopped between two safe points and repeats it")
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
            self.config.to_dict(),
        )
        return path, state["left_out"]

    def _env_id(self) -> str:
        """The environment that is trained on now; in a curriculum the current stage's."""
        return self._stages[self._script["curriculum_stage"]].env_id if self._stages else self.config.env_id

    def _remove_old(self, newest: Path) -> None:
        """Only files of this process: the phases of a script share a folder, and each may count from step 0."""
        self._files = [path for path in self._files if path != newest] + [newest]
        while len(self._files) > self.config.keep_checkpoints:
            checkpoints.remove(self._files.pop(0))
