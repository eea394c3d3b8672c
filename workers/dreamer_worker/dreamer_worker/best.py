"""The best agent so far: evaluations while training, on seeds of their own, and the weights with the highest mean.

checkpoints/best/agent.npz    what the agent had learned then; enough to play it, not to go on training
checkpoints/best/best.json    {"path": "agent.npz", "step", "score", "episodes", "seeds", "version": 1}
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dreamer_worker.agent_process import PART
from dreamer_worker.checkpoint import Counters, read_json, write_arrays, write_json
from dreamer_worker.config import FIRST_EVAL_SEED, DreamerConfig
from dreamer_worker.evaluate import EpisodePlayer
from dreamer_worker.rpc import Caller

log = logging.getLogger(__name__)


class Evaluator:
    """Evaluates every `eval_every` env steps. Its promises:

    1. Who calls it sees to it that nothing is learned meanwhile: one evaluation is of one agent.
    2. Each evaluation plays the same seeds, and none that a training env has.
    3. `best.json` is written after the weights it names; a disk that is full costs the best one, not the run.
    """

    def __init__(
        self,
        agent: Any,
        config: DreamerConfig,
        counters: Counters,
        logger: Caller,
    ) -> None:
        self.folder = Path(config.checkpoint_dir) / "best"
        self.seeds = [FIRST_EVAL_SEED + number for number in range(config.eval_episodes)]
        self._agent, self._config, self._counters = agent, config, counters
        self._logger = logger
        self._last = counters["env_steps"]
        self._best = self._read_score()

    def is_due(self) -> bool:
        every = self._config.eval_every
        return bool(every) and self._counters["env_steps"] // every > self._last // every

    def evaluate(self) -> None:
        steps = self._last = self._counters["env_steps"]
        player = EpisodePlayer(self._config, self._agent)
        played = [player.play(seed) for seed in self.seeds]
        player.close()
        score = sum(episode.score for episode in played) / len(played)
        self._logger.call("evaluated", steps, [asdict(episode) for episode in played])
        if self._best is None or score > self._best:
            self._keep(steps, score)

    def _keep(self, steps: int, score: float) -> None:
        told = {"path": PART, "step": steps, "score": score, "episodes": len(self.seeds), "seeds": self.seeds}
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_arrays(self.folder / PART, self._agent.save())
            write_json(self.folder / "best.json", {**told, "version": 1})
        except OSError as error:
            log.warning("the best agent so far is not kept: %s", error)
            return
        self._best = score
        self._logger.call("saved", str(self.folder / PART), {"step": steps, "best": True, "score": score})

    def _read_score(self) -> float | None:
        """Of a run that goes on in its own folder: what it found before still counts."""
        try:
            return float(read_json(self.folder / "best.json")["score"])
        except (OSError, ValueError, KeyError):
            return None
