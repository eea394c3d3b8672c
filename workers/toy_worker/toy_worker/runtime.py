"""The toy training: returns that rise with noise, reported step by step."""

import time
from typing import Any, Dict, List

from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.names import EVAL_AGENT, EVAL_MEAN_RETURN

from toy_worker.analytics import write_manifest
from toy_worker.config import COMMANDS, POLICY_EVAL, ToyConfig
from toy_worker.helpers import take_up_helpers
from toy_worker.learning import ENV_ID, Noise, skill
from toy_worker.misbehaviour import Misbehaviour
from toy_worker.telemetry import Telemetry


class ToyRuntime:
    """Runs one config to its end."""

    def __init__(self, config: ToyConfig, telemetry: Telemetry) -> None:
        self.config = config
        self.telemetry = telemetry
        self.heart = Heartbeat(config.heartbeat_s, emitter=telemetry)
        self.misbehaviour = Misbehaviour(config, telemetry, self.heart)
        self.noise = Noise(config.seed or 0)
        self.first_step = 0
        self.horizon = config.steps  # a resumed training continues the learning curve that it began
        self.episode_index = 0
        self.episode_return = 0.0
        self.last_return = 0.0
        self.best_score = float("-inf")
        self.picture: Any = None

    def run(self) -> Dict[str, Any]:
        # Before the heartbeat's thread starts: until then forking is safe.
        self.misbehaviour.at_start()
        if self.config.mode == POLICY_EVAL:
            return self._evaluate()
        if self.config.mode == COMMANDS:
            return self._obey()
        if self.config.checkpoint:
            self._restore()
        if self.config.paint:
            from toy_worker.fastlane import show_picture

            self.picture = show_picture(self.config)
        helpers = take_up_helpers(self.telemetry)
        with self.heart:
            self._train()
        if helpers:
            helpers.close()
        if self.picture:
            self.picture.close()
        self.misbehaviour.at_end()
        write_manifest(self.config)
        return {"total_steps": self.config.steps, "episodes": self.episode_index, "last_return": self.last_return}

    def _train(self) -> None:
        config = self.config
        started = time.monotonic()
        for step in range(self.first_step, config.steps):
            self.misbehaviour.at(step)
            self._one_step(step)
            if config.metrics_every and step % config.metrics_every == 0:
                self._metrics(step, time.monotonic() - started)
            if config.text_every and step % config.text_every == 0:
                self.telemetry.text(f"global_step={step}, episodic_return={self.last_return:.3f}", step)
            self.heart.advance()
            self._evaluate_and_save(step + 1)
            if config.rate:
                _wait_until(started + (step + 1 - self.first_step) / config.rate)

    def _one_step(self, step: int) -> None:
        config = self.config
        reward = self._skill(step) + 0.2 * self.noise.next()
        self.episode_return += reward
        in_episode = step % config.episode_length + 1
        ended = in_episode == config.episode_length
        if self.picture:
            self.picture.step((reward, ended))
        for agent in self._agents():
            self.telemetry.step(
                step, reward, episode_index=self.episode_index, terminated=ended, truncated=False, **agent
            )
        if ended:
            self._end_episode(in_episode, step + 1)

    def _end_episode(self, length: int, steps: int) -> None:
        more: Dict[str, Any] = {"terminated": True, "truncated": False, "global_step": steps}
        for agent in self._agents():
            self.telemetry.episode(self.episode_index, self.episode_return, length, **more, **agent)
        self.episode_index += 1
        self.last_return, self.episode_return = self.episode_return, 0.0

    def _metrics(self, step: int, elapsed_s: float) -> None:
        loss = 1.0 - self._skill(step) + 0.05 * self.noise.next()
        sps = (step + 1 - self.first_step) / elapsed_s if elapsed_s > 0 else 0.0
        self.telemetry.metrics({"toy/loss": loss, "charts/SPS": sps, "charts/episodic_return": self.last_return}, step)

    def _evaluate_and_save(self, steps: int) -> None:
        """The evaluation and the checkpoint that are due after this many steps."""
        config = self.config
        if config.eval_every and steps % config.eval_every == 0:
            self._evaluate_now(steps)
        if config.checkpoint_every and (steps % config.checkpoint_every == 0 or steps == config.steps):
            self._save(steps)

    def _save(self, steps: int) -> None:
        from toy_worker.checkpoint import Checkpoints

        self.telemetry.checkpoint_saved(Checkpoints(self.config).save(self._state(steps)), step=steps)

    def _evaluate_now(self, steps: int) -> None:
        """Evaluate on seeds that the training does not use; the best state so far is kept."""
        from mosaic_sdk.evaluation import Evaluation, seeds_from

        from toy_worker.checkpoint import WORKER, Checkpoints
        from toy_worker.evaluate import evaluate

        state, seeds = self._state(steps), seeds_from(None, self.config.eval_episodes)
        about: Dict[str, Any] = {"run_id": self.config.run_id, "worker": WORKER, "env_id": ENV_ID}
        found = Evaluation(emitter=self.telemetry, agent_id=EVAL_AGENT, global_step=steps, **about)
        score = evaluate(state, self.config, found, seeds).mean_return
        self.telemetry.metric(EVAL_MEAN_RETURN, score, steps)
        if score > self.best_score:
            self.best_score = score
            path = Checkpoints(self.config).save_best(state, score, seeds)
            self.telemetry.checkpoint_saved(path, step=steps, best=True, score=score)

    def _state(self, steps: int) -> Dict[str, Any]:
        """Everything that the next step depends on, after `steps` steps."""
        return {
            "step": steps,
            "skill": self._skill(steps),
            "horizon": self.horizon,
            "noise": self.noise.state,
            "episode_index": self.episode_index,
            "episode_return": self.episode_return,
            "last_return": self.last_return,
        }

    def _restore(self) -> None:
        from mosaic_sdk.config import ConfigError

        from toy_worker.checkpoint import load

        path, state = self.config.checkpoint, load(self.config.checkpoint)
        if state["step"] >= self.config.steps:
            raise ConfigError(f"steps: {path} is already at step {state['step']}. Set a larger number of steps.")
        self.first_step, self.horizon, self.noise.state = state["step"], state["horizon"], state["noise"]
        self.episode_index, self.episode_return = state["episode_index"], state["episode_return"]
        self.last_return = state["last_return"]
        self.heart.advance(self.first_step)
        self.telemetry.checkpoint_loaded(path, step=self.first_step)

    def _evaluate(self) -> Dict[str, Any]:
        from toy_worker.evaluate import run_evaluation

        with self.heart:
            summary = run_evaluation(self.config, self.telemetry)
        write_manifest(self.config)
        return summary

    def _obey(self) -> Dict[str, Any]:
        from toy_worker.commands import ToyServant

        with self.heart:
            return ToyServant(self.config, self.telemetry).obey()

    def _skill(self, step: int) -> float:
        forget_at = self.config.forget_at
        return 0.0 if forget_at is not None and step >= forget_at else skill(step, self.horizon)

    def _agents(self) -> List[Dict[str, Any]]:
        """For each agent the fields that name it; a single agent has no name."""
        fields: Dict[str, Any] = {} if self.config.env_index is None else {"env_index": self.config.env_index}
        if self.config.agents <= 1:
            return [fields]
        return [{**fields, "agent_id": f"agent_{number}"} for number in range(self.config.agents)]


def _wait_until(moment: float) -> None:
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)
