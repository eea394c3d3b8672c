"""The training: the library's own `learn()`, with a callback that reports, saves, evaluates and stops."""

import math
import os
from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.checkpoints import CheckpointError, Checkpoints
from mosaic_sdk.cli import WorkerStopped
from mosaic_sdk.evaluation import EVAL_AGENT, EVAL_MEAN_RETURN, FIRST_SEED, Evaluation, seeds_from
from mosaic_sdk.heartbeat import Heartbeat

from stable_baselines3_worker import WORKER, algorithms, checkpoint, envs
from stable_baselines3_worker.analytics import TENSORBOARD, write_manifest
from stable_baselines3_worker.config import RESUME, StableBaselines3Config
from stable_baselines3_worker.fastlane import unshown
from stable_baselines3_worker.stopping import StopSignal, stoppable


class StableBaselines3Runtime:
    """One training, new or resumed, from its environments to its last checkpoint."""

    def __init__(self, config: StableBaselines3Config) -> None:
        self.config = config
        self.model: Any = None

    def run(self) -> dict[str, Any]:
        with Heartbeat(progress=self._progress, total=self.config.total_timesteps), stoppable() as stop:
            vec_env = self._prepare()
            stop.check()
            try:
                episodes = self._learn(stop)
            except WorkerStopped:
                checkpoint.save(self.model, self.config)
                raise
            finally:
                vec_env.close()
                self.model.logger.close()
            checkpoint.save(self.model, self.config)
        emit.stdout().heartbeat(self._progress(), total=self.config.total_timesteps)
        summary = {"algo": self.config.algo, "env_id": self.config.env_id}
        summary.update(total_steps=self.model.num_timesteps, episodes=episodes.count)
        write_manifest(self.config, summary)
        return summary

    def _progress(self) -> int:
        """The last rollout may go beyond the total."""
        return min(self.model.num_timesteps, self.config.total_timesteps) if self.model is not None else 0

    def _prepare(self) -> Any:
        """Make or load the model; returns its environments."""
        os.environ.setdefault("OMP_NUM_THREADS", str(self.config.num_threads))  # read when torch is imported
        vec_env = self._resume() if self.config.mode == RESUME else self._begin()
        from stable_baselines3.common.logger import HumanOutputFormat, Logger, TensorBoardOutputFormat

        from stable_baselines3_worker.telemetry import Metrics

        outputs: list[Any] = [TensorBoardOutputFormat(TENSORBOARD), Metrics()]
        if self.config.verbose:
            import sys

            outputs.append(HumanOutputFormat(sys.stdout))
        self.model.set_logger(Logger(TENSORBOARD, outputs))
        return vec_env

    def _begin(self) -> Any:
        vec_env = envs.make_envs(self.config)
        from stable_baselines3_worker import model

        self.model = model.create(self.config, vec_env)
        return vec_env

    def _resume(self) -> Any:
        found = checkpoint.find(self.config)
        saved = type(self.config).from_dict({**found.settings, "run_id": self.config.run_id})
        self.config = self.config.filled_from(found.settings)
        if (found.step or 0) >= self.config.total_timesteps:
            raise CheckpointError(
                f"{found.path} is at step {found.step}, but total_timesteps is {self.config.total_timesteps}: "
                "nothing is left to train. Increase total_timesteps."
            )
        vec_env = envs.make_envs(self.config, checkpoint.part(found, checkpoint.NORMALIZER))
        from stable_baselines3_worker import model

        path = checkpoint.part(found, checkpoint.MODEL)
        self.model = model.resume(self.config, path, vec_env, saved.algo_params)
        buffer = checkpoint.part(found, checkpoint.BUFFER)
        if buffer:
            self.model.load_replay_buffer(buffer)
        emit.checkpoint_loaded(found.path, step=found.step)
        return vec_env

    def _learn(self, stop: StopSignal) -> Any:
        callback = make_callback(self.config, stop)
        more = {}
        if algorithms.find(self.config.algo).is_maskable:
            from stable_baselines3_worker.play import action_masks

            more["use_masking"] = action_masks(self.model.get_env()) is not None
        self.model.learn(
            self.config.total_timesteps - self.model.num_timesteps,
            callback=callback,
            reset_num_timesteps=self.config.mode != RESUME,
            **more,
        )
        return callback.episodes


def make_callback(config: StableBaselines3Config, stop: StopSignal) -> Any:
    """The library calls it after each step. In a function, because its base class imports torch."""
    from stable_baselines3.common.callbacks import BaseCallback

    from stable_baselines3_worker.telemetry import Episodes

    class Reporter(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.episodes = Episodes()
            self._trial: Trial | None = None

        def _on_training_start(self) -> None:
            self._saved = self._evaluated = self.num_timesteps

        def _on_step(self) -> bool:
            stop.check()
            self.episodes.report(self.locals["infos"], self.num_timesteps)
            is_last = self.num_timesteps >= config.total_timesteps  # saved at the end, after its update
            if not is_last and _is_due(self._saved, self.num_timesteps, config.checkpoint_every):
                self._saved = self.num_timesteps
                checkpoint.save(self.model, config)
            if _is_due(self._evaluated, self.num_timesteps, config.eval_every):
                self._evaluated = self.num_timesteps
                self._trial = self._trial or Trial(config)
                self._trial.measure(self.model, stop)
            return True

    return Reporter()


def _is_due(last: int, now: int, every: int) -> bool:
    return every > 0 and now // every > last // every


class Trial:
    """Evaluates the policy in training, on an environment of its own, and keeps the best."""

    def __init__(self, config: StableBaselines3Config) -> None:
        with unshown():
            self._vec_env = envs.freeze(envs.make_envs(config, count=1))
        self._config = config
        known = Checkpoints(checkpoint.checkpoint_folder()).best_score()
        self._best = -math.inf if known is None else known
        self._played = 0

    def measure(self, model: Any, stop: StopSignal) -> None:
        from stable_baselines3.common.vec_env import sync_envs_normalization

        from stable_baselines3_worker.play import Actor, play

        config = self._config
        sync_envs_normalization(model.get_env(), self._vec_env)
        found = Evaluation(
            run_id=config.run_id,
            worker=WORKER,
            env_id=config.env_id,
            algo=config.algo,
            deterministic=config.eval_deterministic,
            agent_id=EVAL_AGENT,
            global_step=model.num_timesteps,
            first_index=self._played,
        )
        actor = Actor(model, config)
        for seed in seeds_from(max(FIRST_SEED, config.seed + config.n_envs), config.eval_episodes):
            found.add(seed, *play(actor, self._vec_env, seed))
            stop.check()
        self._played += len(found.rows)
        for output in model.logger.output_formats:
            output.write({EVAL_MEAN_RETURN: found.mean_return}, {EVAL_MEAN_RETURN: ("",)}, model.num_timesteps)
        if found.mean_return > self._best:
            self._best = found.mean_return
            checkpoint.save_best(model, config, found)
