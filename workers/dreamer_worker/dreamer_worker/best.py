"""The best agent so far: evaluations while training, on seeds of their own, and the weights with the highest mean.

checkpoints/best/agent.npz    what the agent had learned then: enough to play it, not to continue training
checkpoints/best/best.json    {"path": "agent.npz", "step", "score", "episodes", "seeds", "version": 1}
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mosaic_sdk.checkpoints import Checkpoints, commit
from mosaic_sdk.evaluation import FIRST_SEED, seeds_from
from mosaic_sdk.names import BEST

from dreamer_worker import settings
from dreamer_worker.agent_process import PART
from dreamer_worker.checkpoint import FORMAT, WORKER, Counters, write_arrays
from dreamer_worker.config import DreamerConfig
from dreamer_worker.evaluate import ALGO, EpisodePlayer
from dreamer_worker.rpc import Caller

log = logging.getLogger(__name__)


class Evaluator:
    """Evaluates every `eval_every` env steps. Its promises:

    1. The caller makes sure that nothing is learned meanwhile: one evaluation is of one agent.
    2. Each evaluation plays the same seeds, and none that a training env has.
    3. `best.json` is written after the weights it names; if the disk is full, only the best agent is lost.
    """

    def __init__(self, agent: Any, config: DreamerConfig, counters: Counters, logger: Caller) -> None:
        self.folder = Path(config.checkpoint_dir) / BEST
        self.seeds = seeds_from(FIRST_SEED, config.eval_episodes)
        self._checkpoints = Checkpoints(config.checkpoint_dir, PART)
        self._agent, self._config, self._counters, self._logger = agent, config, counters, logger
        self._last = counters["env_steps"]
        self._best = self._checkpoints.best_score()  # a run that continues in its own folder has one already

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
        path, config = self.folder / PART, self._config
        try:
            write_arrays(path, self._agent.save())
            stored = settings.kept(config)
            commit(path, worker=WORKER, format=FORMAT, step=steps, env_id=config.env, algo=ALGO, settings=stored)
            self._checkpoints.keep_best(path, step=steps, score=score, seeds=self.seeds)
        except OSError as error:
            log.warning("the best agent so far could not be saved: %s", error)
            return
        self._best = score
        self._logger.call("saved", str(path), {"step": steps, "best": True, "score": score})
