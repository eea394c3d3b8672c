"""The toy training: a return that rises with noise, told step by step."""

import math
import time
from typing import Any, Dict, List

from mosaic_sdk.heartbeat import Heartbeat

from toy_worker.analytics import write_manifest
from toy_worker.config import ToyConfig
from toy_worker.misbehaviour import Misbehaviour
from toy_worker.telemetry import Telemetry


class ToyRuntime:
    """Runs one config to its end."""

    def __init__(self, config: ToyConfig, tell: Telemetry) -> None:
        self.config = config
        self.tell = tell
        self.heart = Heartbeat(config.heartbeat_s, emitter=tell)
        self.misbehaviour = Misbehaviour(config, tell, self.heart)
        self.noise = _Noise(config.seed or 0)
        self.episode_index = 0
        self.episode_return = 0.0
        self.last_return = 0.0
        self.picture: Any = None

    def run(self) -> Dict[str, Any]:
        # Before the heart has its thread: forking is safe then.
        self.misbehaviour.at_start()
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
        for step in range(config.steps):
            self.misbehaviour.at(step)
            self._one_step(step)
            if config.metrics_every and step % config.metrics_every == 0:
                self._metrics(step, time.monotonic() - started)
            if config.text_every and step % config.text_every == 0:
                self.tell.text(f"global_step={step}, episodic_return={self.last_return:.3f}", step)
            self.heart.advance()
            if config.rate:
                _wait_until(started + (step + 1) / config.rate)

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

    def _end_episode(self, steps: int, global_step: int) -> None:
        how = {"terminated": True, "truncated": False, "global_step": global_step}
        for agent in self._agents():
            self.tell.episode(self.episode_index, self.episode_return, steps, **how, **agent)
        self.episode_index += 1
        self.last_return, self.episode_return = self.episode_return, 0.0

    def _metrics(self, step: int, elapsed_s: float) -> None:
        loss = 1.0 - self._skill(step) + 0.05 * self.noise.next()
        sps = (step + 1) / elapsed_s if elapsed_s > 0 else 0.0
        self.tell.metrics({"toy/loss": loss, "charts/SPS": sps, "charts/episodic_return": self.last_return}, step)

    def _skill(self, step: int) -> float:
        """From 0 towards 1, quickly first and slowly later, as learning goes."""
        return 1.0 - math.exp(-4.0 * step / self.config.steps)

    def _agents(self) -> List[Dict[str, Any]]:
        """The fields that name each agent; one empty set of them when there is a single unnamed one."""
        fields: Dict[str, Any] = {} if self.config.env_index is None else {"env_index": self.config.env_index}
        if self.config.agents <= 1:
            return [fields]
        return [{**fields, "agent_id": f"agent_{number}"} for number in range(self.config.agents)]


class _Noise:
    """Numbers between -1 and 1 from a seed. Not `random`, whose import the worker's start would feel."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2654435769 + 1

    def next(self) -> float:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        return (self._state >> 40) / (1 << 23) - 1.0


def _wait_until(moment: float) -> None:
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)
