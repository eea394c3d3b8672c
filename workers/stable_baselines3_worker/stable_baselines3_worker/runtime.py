"""The training: the library's own `learn()`, with a callback that reports, saves, evaluates and stops."""

import math
import os
import sys
from typing import Any

from mosaic_sdk.checkpoints import Checkpoint, Checkpoints
from mosaic_sdk.evaluation import EVAL_AGENT, EVAL_MEAN_RETURN, FIRST_SEED, Evaluation, seeds_from
from mosaic_sdk.library import saving
from mosaic_sdk.library.frames import unshown
from mosaic_sdk.library.settings import RESUME
from mosaic_sdk.library.training import TENSORBOARD, Training, is_due

from stable_baselines3_worker import WORKER, algorithms, checkpoint, envs
from stable_baselines3_worker.config import StableBaselines3Config


def train(config: StableBaselines3Config) -> dict[str, Any]:
    return StableBaselines3Training(config).run()


class StableBaselines3Training(Training):
    """One training, new or resumed."""

    worker, has_pickles = WORKER, True
    model: Any = None

    @property
    def steps(self) -> int:
        return self.model.num_timesteps if self.model is not None else 0

    def build(self, start: Checkpoint | None) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", str(self.config.num_threads))  # read when torch is imported
        normalizer = checkpoint.part(start, checkpoint.NORMALIZER) if start else ""
        self.vec_env = envs.make_envs(self.config, normalizer)
        from stable_baselines3_worker import model

        if start:
            self.model = model.resume(self.config, start, self.vec_env)
        else:
            self.model = model.create(self.config, self.vec_env)
        self._trial: Trial | None = None
        self._evaluated = self.steps
        self._set_logger()

    def learn(self) -> None:
        more = {}
        if algorithms.find(self.config.algo).is_maskable:
            from stable_baselines3_worker.play import action_masks

            more["use_masking"] = action_masks(self.model.get_env()) is not None
        self.model.learn(
            self.config.total_timesteps - self.steps,
            callback=self._on_step,
            reset_num_timesteps=self.config.mode != RESUME,
            **more,
        )

    def write(self, path: str) -> None:
        checkpoint.write(self.model, path, self.config.save_replay_buffer)

    def close(self) -> None:
        self.vec_env.close()
        self.model.logger.close()

    def _on_step(self, values: dict[str, Any], _: Any) -> bool:
        """The library calls it after each step, with its own local variables."""
        from stable_baselines3_worker.telemetry import ended_episodes

        for episode in ended_episodes(values["infos"]):
            self.report_episode(**episode)
        self.at_step()
        if is_due(self._evaluated, self.steps, self.config.eval_every):
            self._evaluated = self.steps
            self._trial = self._trial or Trial(self)
            self._trial.measure()
        return True

    def _set_logger(self) -> None:
        from stable_baselines3.common.logger import HumanOutputFormat, Logger, TensorBoardOutputFormat

        from stable_baselines3_worker.telemetry import Metrics

        outputs: list[Any] = [TensorBoardOutputFormat(TENSORBOARD), Metrics()]
        if self.config.verbose:
            outputs.append(HumanOutputFormat(sys.stdout))
        self.model.set_logger(Logger(TENSORBOARD, outputs))


class Trial:
    """Evaluates the policy in training, on an environment of its own, and keeps the best."""

    def __init__(self, training: StableBaselines3Training) -> None:
        self._training, self._config = training, training.config
        with unshown():
            self._vec_env = envs.freeze(envs.make_envs(self._config, count=1))
        known = Checkpoints(saving.checkpoint_folder()).best_score()
        self._best = -math.inf if known is None else known
        self._played = 0

    def measure(self) -> None:
        from stable_baselines3.common.vec_env import sync_envs_normalization

        from stable_baselines3_worker.play import Actor, play

        config, training, model = self._config, self._training, self._training.model
        sync_envs_normalization(model.get_env(), self._vec_env)
        found = Evaluation(
            run_id=config.run_id,
            worker=WORKER,
            env_id=config.env_id,
            algo=config.algo,
            deterministic=config.eval_deterministic,
            agent_id=EVAL_AGENT,
            global_step=training.steps,
            first_index=self._played,
        )
        actor = Actor(model, config)
        for seed in seeds_from(max(FIRST_SEED, config.seed + config.n_envs), config.eval_episodes):
            found.add(seed, *play(actor, self._vec_env, seed)[:4])
            training.stop.check()
        self._played += len(found.rows)
        for output in model.logger.output_formats:
            output.write({EVAL_MEAN_RETURN: found.mean_return}, {EVAL_MEAN_RETURN: ("",)}, training.steps)
        if found.mean_return > self._best:
            self._best = found.mean_return
            training.save_as(best=found, write=lambda path: checkpoint.write(model, path, with_buffer=False))
