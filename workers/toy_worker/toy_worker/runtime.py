"""The toy training: a return that rises with noise, told step by step."""

import time
from typing import Any, Dict, List

from mosaic_sdk.heartbeat import Heartbeat

from toy_worker.analytics import write_manifest
from toy_worker.config import POLICY_EVAL, ToyConfig
from toy_worker.learning import Noise, skill
from toy_worker.misbehaviour import Misbehaviour
from toy_worker.telemetry import Telemetry


class ToyRuntime:
    """Runs one config to its end."""

    def __init__(self, config: ToyConfig, tell: Telemetry) -> None:
        self.config = config
        self.tell = tell
        self.heart = Heartbeat(config.heartbeat_s, emitter=tell)
        self.misbehaviour = Misbehaviour(config, tell, self.heart)
        self.noise = Noise(config.seed or 0)
        self.first_step = 0
        self.horizon = config.steps  # a resumed training learns on along the curve that it began
        self.episode_index = 0
        self.episode_return = 0.0
        self.last_return = 0.0
        self.best_score = float("-inf")
        self.picture: Any = None

    def run(self) -> Dict[str, Any]:
        # Before the heart has its thread: forking is safe then.
        self.misbehaviour.at_start()
        if self.config.mode == POLICY_EVAL:
            return self._evaluate()
        if self.config.checkpoint:
            self._restore()
        if self.config.paint:
            from toy_worker.picture import show_picture

            self.picture = show_picture(self.config)
        with self.heart:
            self._train()
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
                self.tell.text(f"global_step={step}, episodic_return={self.last_return:.3f}", step)
            self.heart.advance()
            self._look_after(step + 1)
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
            self.tell.step(step, reward, episode_index=self.episode_index, terminated=ended, truncated=False, **agent)
        if ended:
            self._end_episode(in_episode, step + 1)

    def _end_episode(self, length: int, steps: int) -> None:
        more: Dict[str, Any] = {"terminated": True, "truncated": False, "global_step": steps}
        for agent in self._agents():
            self.tell.episode(self.episode_index, self.episode_return, length, **more, **agent)
        self.episode_index += 1
        self.last_return, self.episode_return = self.episode_return, 0.0

    def _metrics(self, step: int, elapsed_s: float) -> None:
        loss = 1.0 - self._skill(step) + 0.05 * self.noise.next()
        sps = (step + 1 - self.first_step) / elapsed_s if elapsed_s > 0 else 0.0
        self.tell.metrics({"toy/loss": loss, "charts/SPS": sps, "charts/episodic_return": self.last_return}, step)

    def _look_after(self, steps: int) -> None:
        """The evaluation and the checkpoint that are due after so many steps."""
        config = self.config
        if config.eval_every and steps % config.eval_every == 0:
            self._evaluate_now(steps)
        if config.checkpoint_every and (steps % config.checkpoint_every == 0 or steps == config.steps):
            self._save(steps)

    def _save(self, steps: int) -> None:
        from toy_worker.checkpoint import Checkpoints

        self.tell.checkpoint_saved(Checkpoints().save(self._state(steps)), step=steps)

    def _evaluate_now(self, steps: int) -> None:
        """Play on seeds of its own; the best state so far is kept."""
        from toy_worker.checkpoint import Checkpoints
        from toy_worker.evaluate import FIRST_SEED, play

        config, state = self.config, self._state(steps)
        seeds = [FIRST_SEED + number for number in range(config.eval_episodes)]
        returns = play(state, config.episode_length, seeds)
        for number, total in enumerate(returns):
            more: Dict[str, Any] = {"agent_id": "eval", "episode_seed": seeds[number], "global_step": steps}
            self.tell.episode(number, total, config.episode_length, terminated=True, truncated=False, **more)
        score = sum(returns) / len(returns)
        self.tell.metric("eval/mean_return", score, steps)
        if score > self.best_score:
            self.best_score = score
            path = Checkpoints().save_best(state, score, seeds)
            self.tell.checkpoint_saved(path, step=steps, best=True, score=score)

    def _state(self, steps: int) -> Dict[str, Any]:
        """All that the next step depends on, `steps` steps being done."""
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
            raise ConfigError(f"steps: {path} is at step {state['step']} already. Give more, or none is left to do.")
        self.first_step, self.horizon, self.noise.state = state["step"], state["horizon"], state["noise"]
        self.episode_index, self.episode_return = state["episode_index"], state["episode_return"]
        self.last_return = state["last_return"]
        self.heart.advance(self.first_step)
        self.tell.checkpoint_loaded(path, step=self.first_step)

    def _evaluate(self) -> Dict[str, Any]:
        from toy_worker.evaluate import run_evaluation

        with self.heart:
            summary = run_evaluation(self.config, self.tell)
        write_manifest(self.config)
        return summary

    def _skill(self, step: int) -> float:
        forget_at = self.config.forget_at
        return 0.0 if forget_at is not None and step >= forget_at else skill(step, self.horizon)

    def _agents(self) -> List[Dict[str, Any]]:
        """The fields that name each agent; one empty set of them when there is a single unnamed one."""
        fields: Dict[str, Any] = {} if self.config.env_index is None else {"env_index": self.config.env_index}
        if self.config.agents <= 1:
            return [fields]
        return [{**fields, "agent_id": f"agent_{number}"} for number in range(self.config.agents)]


def _wait_until(moment: float) -> None:
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)
