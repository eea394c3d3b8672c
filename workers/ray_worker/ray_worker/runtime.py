"""The training: RLlib's own iterations, with reports, checkpoints and stops between them."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.checkpoints import CheckpointError
from mosaic_sdk.cli import WorkerStopped
from mosaic_sdk.heartbeat import Heartbeat

from ray_worker import checkpoint
from ray_worker.analytics import TENSORBOARD, write_manifest
from ray_worker.config import RESUME, RayWorkerConfig
from ray_worker.scratch import scratch_folder
from ray_worker.stopping import StopSignal, stoppable
from ray_worker.telemetry import Watch, metrics_of, refuse_divergence, take_rows

STEPS = "num_env_steps_sampled_lifetime"


class RayWorkerRuntime:
    """One training, new or resumed, from its Ray instance to its last checkpoint."""

    def __init__(self, config: RayWorkerConfig) -> None:
        self.config = config
        self.watch = Watch()
        self.algorithm: Any = None
        self._learned = self._saved = 0  # steps, as RLlib counts them

    def run(self) -> dict[str, Any]:
        found = checkpoint.find(self.config) if self.config.mode == RESUME else None
        if found:
            self.config = self.config.filled_from(found.settings)
            _refuse_finished(found, self.config)
        # The first heartbeats come while libraries are imported and Ray is started.
        with Heartbeat(progress=lambda: self.watch.steps, total=self._total), scratch_folder() as scratch:
            prepare_process(self.config)
            check_env(self.config)
            with stoppable() as stop, self._home(scratch, stop):
                self._build(stop, scratch, found)
                self._train(stop)
        emit.stdout().heartbeat(self.watch.steps, total=self._total())
        summary = {"algo": self.config.algo, "env_id": self.config.env_id, "total_steps": self.watch.steps}
        summary.update(episodes=self.watch.episodes)
        write_manifest(self.config, summary)
        return summary

    def _total(self) -> int:
        """The last iteration may go beyond the total."""
        return max(self.config.total_timesteps, self.watch.steps)

    @contextlib.contextmanager
    def _home(self, scratch: str, stop: StopSignal) -> Iterator[None]:
        """Where RLlib's objects and processes live: in a Ray instance, or in this process."""
        config = self.config
        if not config.needs_instance:
            from ray_worker.objects import keep_objects_here

            keep_objects_here()
            yield
            return
        from ray_worker.instance import ray_instance

        cpus, gpus = 1 + config.num_env_runners + config.num_learners, config.num_learners * config.num_gpus_per_learner
        with ray_instance(
            scratch, cpus=cpus, gpus=gpus, attempts=config.ray_start_attempts, is_stopping=lambda: stop.is_set
        ):
            stop.check()
            yield

    def _build(self, stop: StopSignal, scratch: str, found: Any) -> None:
        from ray_worker.build import build_algorithm

        if found:
            self.watch.steps = self._learned = self._saved = found.step or 0
            self.watch.episodes = int(found.about.get("episodes") or 0)
        self.watch.watch_with(stop.check)
        self.algorithm = build_algorithm(self.config, self.watch, scratch)
        stop.check()
        if found:
            self.algorithm.restore_from_path(found.path)
            emit.checkpoint_loaded(found.path, step=found.step)

    def _train(self, stop: StopSignal) -> None:
        from tensorboardX import SummaryWriter

        with SummaryWriter(os.path.join(os.environ.get("MOSAIC_RUN_DIR", "."), TENSORBOARD)) as writer:
            try:
                while self.watch.steps < self.config.total_timesteps:
                    self._iterate(writer)
                    stop.check()
            except WorkerStopped:
                self._save_stopped()
                raise
        self._save()
        self.algorithm.stop()

    def _iterate(self, writer: Any) -> None:
        started, before = time.monotonic(), self.watch.steps
        result = self.algorithm.train()
        self._learned = self.watch.steps = int(result[STEPS])
        self._fetch_episodes()
        values = metrics_of(result)
        values["charts/SPS"] = (self.watch.steps - before) / max(time.monotonic() - started, 1e-9)
        emit.metrics(values, self.watch.steps)
        for name, value in values.items():
            writer.add_scalar(name, value, self.watch.steps)
        if self.config.stop_on_nan:
            refuse_divergence(result)
        every = self.config.checkpoint_every
        if every and self.watch.steps // every > self._saved // every:
            self._save()

    def _fetch_episodes(self) -> None:
        if self.config.num_env_runners:
            group = self.algorithm.env_runner_group
            for rows in group.foreach_env_runner(take_rows, local_env_runner=False):
                for row in rows or ():
                    self.watch.report(row)

    def _save_stopped(self) -> None:
        """The learners of this process still have their weights; others have got SIGTERM like this one."""
        if self.config.num_learners:
            print("Stopped without a new checkpoint: the learners' processes are gone.", file=sys.stderr)
            return
        # Steps that were taken but did not reach the learner are not part of the checkpoint.
        self._learned = int(self.algorithm.metrics.peek(("env_runners", STEPS), default=0))
        self._save()

    def _save(self) -> None:
        if self._saved != self._learned:
            self._saved = self._learned
            checkpoint.save(self.algorithm, self.config, self._learned, self.watch.episodes)


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
    from ray_worker.fastlane import unshown

    if is_multi_agent(config.env_id):
        find_game(config.env_id)
        return
    with unshown():
        make_env(config).close()


def _refuse_finished(found: Any, config: RayWorkerConfig) -> None:
    if (found.step or 0) >= config.total_timesteps:
        raise CheckpointError(
            f"{found.path} is at step {found.step}, but total_timesteps is {config.total_timesteps}: "
            "nothing is left to train. Increase total_timesteps."
        )
