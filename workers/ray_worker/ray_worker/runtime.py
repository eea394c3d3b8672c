"""The training: RLlib's own iterations, with reports, checkpoints and stops between them."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.library.frames import unshown
from mosaic_sdk.library.saving import run_folder
from mosaic_sdk.library.training import TENSORBOARD, Training

from ray_worker import WORKER
from ray_worker.config import RayWorkerConfig
from ray_worker.scratch import scratch_folder
from ray_worker.stopping import PATIENCE_S, checked_by_optimizers
from ray_worker.telemetry import Watch, metrics_of, refuse_divergence, take_rows

STEPS = "num_env_steps_sampled_lifetime"


def train(config: RayWorkerConfig) -> dict[str, Any]:
    return RayTraining(config).run()


class RayTraining(Training):
    """One training, new or resumed, from its Ray instance to its last checkpoint."""

    worker, has_pickles, patience_s = WORKER, True, PATIENCE_S

    def __init__(self, config: RayWorkerConfig) -> None:
        super().__init__(config)
        self.watch = Watch()
        self.algorithm: Any = None
        self._scratch = ""

    @property
    def steps(self) -> int:
        return self.watch.steps

    @contextlib.contextmanager
    def surroundings(self) -> Iterator[None]:
        """Where RLlib's objects and processes live: in a Ray instance, or in this process."""
        config = self.config
        prepare_process(config)
        check_env(config)
        with scratch_folder() as self._scratch, checked_by_optimizers(self.stop):
            if not config.needs_instance:
                from ray_worker.objects import keep_objects_here

                keep_objects_here()
                yield
                return
            from ray_worker.instance import ray_instance

            cpus = 1 + config.num_env_runners + config.num_learners
            gpus, attempts = config.num_learners * config.num_gpus_per_learner, config.ray_start_attempts
            is_stopping = lambda: self.stop.is_set  # noqa: E731
            with ray_instance(self._scratch, cpus=cpus, gpus=gpus, attempts=attempts, is_stopping=is_stopping):
                self.stop.check()
                yield

    def build(self, start: Checkpoint | None) -> None:
        from ray_worker.build import build_algorithm

        self.watch.watch_with(self.stop.check)
        self.algorithm = build_algorithm(self.config, self.watch, self._scratch)
        self.stop.check()
        if start:
            self.watch.steps, self.watch.episodes = start.step or 0, int(start.about.get("episodes") or 0)
            self.algorithm.restore_from_path(start.path)

    def learn(self) -> None:
        from tensorboardX import SummaryWriter

        with SummaryWriter(os.path.join(run_folder(), TENSORBOARD)) as writer:
            while self.steps < self.config.total_timesteps:
                self._iterate(writer)
                self.at_step()
        self.save()
        self.algorithm.stop()

    def write(self, path: str) -> None:
        self.algorithm.save_to_path(path)

    def about(self) -> dict[str, Any]:
        return {"episodes": self.watch.episodes}

    def save_stopped(self) -> None:
        """The learners of this process still have their weights; others have got SIGTERM like this one."""
        if self.algorithm is None:
            return
        if self.config.num_learners:
            print("Stopped without a new checkpoint: the learners' processes are gone.", file=sys.stderr)
            return
        # Steps that were taken but did not reach the learner are not part of the checkpoint.
        self.watch.steps = int(self.algorithm.metrics.peek(("env_runners", STEPS), default=0))
        self.save()

    def _iterate(self, writer: Any) -> None:
        started, before = time.monotonic(), self.steps
        result = self.algorithm.train()
        self.watch.steps = int(result[STEPS])
        self._fetch_episodes()
        self.episodes = self.watch.episodes
        values = metrics_of(result)
        values["charts/SPS"] = (self.steps - before) / max(time.monotonic() - started, 1e-9)
        emit.metrics(values, self.steps)
        for name, value in values.items():
            writer.add_scalar(name, value, self.steps)
        if self.config.stop_on_nan:
            refuse_divergence(result)

    def _fetch_episodes(self) -> None:
        if self.config.num_env_runners:
            group = self.algorithm.env_runner_group
            for rows in group.foreach_env_runner(take_rows, local_env_runner=False):
                for row in rows or ():
                    self.watch.report(row)


def prepare_process(config: RayWorkerConfig) -> None:
    """Before torch and Ray are imported."""
    os.environ.setdefault("OMP_NUM_THREADS", str(config.num_threads))
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import warnings

    # RLlib warns about its own deprecated calls at every start.
    warnings.filterwarnings("ignore", category=DeprecationWarning)


def check_env(config: RayWorkerConfig) -> None:
    """ConfigError if the environment cannot be created, before the libraries are imported, which takes long."""
    from ray_worker.envs import find_game, is_multi_agent, make_env

    if is_multi_agent(config.env_id):
        find_game(config.env_id)
        return
    with unshown():
        make_env(config).close()
