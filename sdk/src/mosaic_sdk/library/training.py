"""One training of a library, from its environments to its last checkpoint.

class AcmeTraining(Training):
    worker = "acme"

    def build(self, start):
        self.model = acme.load(start.path) if start else acme.PPO(self.config.env_id)

    def learn(self):
        self.model.learn(self.config.total_timesteps, callback=self.at_step)

    @property
    def steps(self): return self.model.steps

    def write(self, path):
        self.model.save(path)

    def close(self): ...
"""

import contextlib
import os
from typing import Any, Callable, ContextManager, Dict, Mapping, Optional

from mosaic_sdk import emit
from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.cli import WorkerStopped
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.library import saving
from mosaic_sdk.library.settings import RESUME, LibrarySettings
from mosaic_sdk.library.stopping import PATIENCE_S, StopSignal
from mosaic_sdk.manifest import AnalyticsManifest
from mosaic_sdk.names import CHECKPOINTS, WorkerEnv

TENSORBOARD, VIDEOS = "tensorboard", "videos"


class Training:
    """A worker overrides the first group of methods, and the second where its library differs.

    1. Heartbeats are sent while the library is imported, too.
    2. After SIGTERM the training stops at its next `at_step`, and is saved as it is then.
    3. A checkpoint is saved every `checkpoint_every` steps and at the end, and none twice at the same step.
    """

    worker = ""
    checkpoint_format = 1
    has_pickles = False  # in its checkpoints
    suffix = ""  # of a checkpoint that is a file
    patience_s: Optional[float] = PATIENCE_S

    def __init__(self, config: Any) -> None:
        self.config = config
        self.asked = config  # as it was given, without the settings of the checkpoint that it resumes
        self.stop = StopSignal(self.patience_s)
        self.episodes = 0
        self._saved_at = 0

    # What a worker supplies.

    def build(self, start: Optional[Checkpoint]) -> None:
        """Make the environments and the model, or load the model of a checkpoint."""
        raise NotImplementedError

    def learn(self) -> None:
        """The library's own loop, which calls `at_step` after each step."""
        raise NotImplementedError

    @property
    def steps(self) -> int:
        """Environment steps so far; 0 before the model is built."""
        raise NotImplementedError

    def write(self, path: str) -> None:
        """Write a checkpoint's files."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the environments and the library's logs."""

    # What a worker may change.

    def surroundings(self) -> ContextManager[Any]:
        """What lives as long as the training."""
        return contextlib.nullcontext()

    def save_stopped(self) -> None:
        """Save a training that was stopped."""
        self.save()

    def about(self) -> Dict[str, Any]:
        """Further keys of a checkpoint's commit.json."""
        return {}

    # The rest is done.

    def run(self) -> Dict[str, Any]:
        """Train to the end; returns the summary."""
        start = self._find_start()
        heart = Heartbeat(progress=self._progress, total=self.config.total_timesteps)
        with heart, self.stop, self.surroundings():
            self._begin(start)
            try:
                self.learn()
                self.save()
            except WorkerStopped:
                self.stop.disarm()
                self.save_stopped()
                raise
            finally:
                self.close()
        emit.stdout().heartbeat(self._progress(), total=self.config.total_timesteps)
        summary = {"algo": self.config.algo, "env_id": self.config.env_id}
        summary.update(total_steps=self.steps, episodes=self.episodes)
        write_manifest(self.config, self.worker, summary, **self.about())
        return summary

    def at_step(self) -> None:
        """A point at which the weights are consistent: stop here, or save if a checkpoint is due."""
        self.stop.check()
        # The last one is saved at the end, after its update.
        if self.steps < self.config.total_timesteps and is_due(
            self._saved_at, self.steps, self.config.checkpoint_every
        ):
            self.save()

    def report_episode(self, total_reward: float, length: int, **more: Any) -> None:
        emit.episode(self.episodes, float(total_reward), int(length), **{"global_step": self.steps, **more})
        self.episodes += 1

    def save(self) -> None:
        if self.steps != self._saved_at:
            self._saved_at = self.steps
            self.save_as()

    def save_as(self, write: Optional[Callable[[str], None]] = None, **more: Any) -> str:
        """Save now. `more`: see saving.save."""
        about = {"worker": self.worker, "format": self.checkpoint_format, "suffix": self.suffix, **self.about()}
        return saving.save(write or self.write, self.config, step=self.steps, **{**about, **more})

    def _find_start(self) -> Optional[Checkpoint]:
        if self.config.mode != RESUME:
            return None
        found = saving.find(
            self.config, worker=self.worker, format=self.checkpoint_format, has_pickles=self.has_pickles
        )
        self.config = self.config.filled_from(found.settings)
        saving.refuse_finished(found, self.config.total_timesteps)
        return found

    def _begin(self, start: Optional[Checkpoint]) -> None:
        self.build(start)
        self._saved_at = self.steps
        if start:
            emit.checkpoint_loaded(start.path, step=start.step)
        self.stop.check()

    def _progress(self) -> int:
        """The last rollout may go beyond the total."""
        return min(self.steps, int(self.config.total_timesteps))


def is_due(last: int, now: int, every: int) -> bool:
    """Whether a multiple of `every` lies between two numbers of steps; never for 0."""
    return every > 0 and now // every > last // every


def write_manifest(config: LibrarySettings, worker: str, summary: Mapping[str, Any], **more: Any) -> None:
    """analytics.json, if the run has a folder. `more`: further metadata."""
    if WorkerEnv.RUN_DIR not in os.environ:
        return  # started by hand
    about = {"algo": config.algo, "env_id": config.env_id, "mode": config.mode, "summary": dict(summary)}
    is_training = "total_steps" in summary
    AnalyticsManifest(
        config.run_id,
        worker,
        tensorboard_dir=TENSORBOARD if is_training else None,
        checkpoints_dir=CHECKPOINTS if is_training else None,
        videos_dir=VIDEOS if getattr(config, "eval_capture_video", False) else None,
        metadata={**about, **more},
    ).write()
