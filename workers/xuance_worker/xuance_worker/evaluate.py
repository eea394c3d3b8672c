"""mode=policy_eval: a checkpoint's policy on given seeds, with XuanCe's own test loop.

That loop resets without a seed and updates the statistics of observations while it tests. Here each episode starts from
its seed, and the statistics stay those of the training. XuanCe tests greedily, except for SAC's family, which samples.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mosaic_sdk.evaluation import Evaluation
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.library import evaluating
from mosaic_sdk.library.stopping import StopSignal

from xuance_worker import WORKER
from xuance_worker.algorithms import ALGORITHMS
from xuance_worker.config import XuanceConfig
from xuance_worker.policy import load_policy
from xuance_worker.telemetry import forward_metrics, score


def evaluate(config: XuanceConfig) -> dict[str, Any]:
    """Play, report, write eval_summary.json; returns the statistics."""
    seeds = evaluating.seeds_of(config)
    rows: list[Any] = []  # of the episodes that have ended
    with Heartbeat(progress=lambda: len(rows), total=len(seeds)), StopSignal(patience_s=None) as stop:
        stage = load_policy(config)
        greedy = ALGORITHMS[stage.config.algo].is_greedy
        found = evaluating.new_evaluation(stage.config, WORKER, stage.found, deterministic=greedy)
        rows = found.rows
        forward_metrics(stage.setup.agent)
        try:
            play(stage.setup, seeds, found, stop.check)
        finally:
            stage.close()
    return evaluating.finish(found, stage.config, WORKER, stage.found, preset=stage.setup.preset)


def play(setup: Any, seeds: list[int], found: Evaluation, at_step: Callable[[], None]) -> None:
    """One episode for each seed, in XuanCe's test loop."""
    import torch

    torch.manual_seed(seeds[0])  # for the algorithms that sample
    holder = setup.envs.envs[0].env  # XuanCe's own adapter; the environment itself is its attribute `env`
    holder.env = Seeded(holder.env, iter(seeds), found, at_step)
    setup.agent.test(test_episodes=len(seeds), test_envs=setup.envs, close_envs=False)


class Seeded:
    """An environment that takes the next seed at each reset, and reports each episode. The rest is as it was."""

    def __init__(self, env: Any, seeds: Iterator[int], found: Evaluation, at_step: Callable[[], None]) -> None:
        self._env, self._seeds, self._found, self._at_step = env, seeds, found, at_step
        self._seed: int | None = None
        self._rewards: Any = 0.0
        self._length = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, **options: Any) -> Any:
        # None after the last episode: XuanCe resets once more, and nobody plays that episode.
        self._seed, self._rewards, self._length = next(self._seeds, None), 0.0, 0
        return self._env.reset(seed=self._seed, **options)

    def step(self, action: Any) -> Any:
        outcome = self._env.step(action)
        _, reward, terminated, truncated, _ = outcome
        self._rewards, self._length = _added(self._rewards, reward), self._length + 1
        is_terminated, is_truncated = _holds_for_all(terminated), _holds_for_all(truncated)
        if self._seed is not None and (is_terminated or is_truncated):
            total, returns = score(self._rewards)
            more = {"returns": returns} if returns else {}
            self._found.add(self._seed, total, self._length, is_terminated, is_truncated, **more)
        self._at_step()
        return outcome


def _added(total: Any, reward: Any) -> Any:
    if not isinstance(reward, Mapping):
        return total + float(reward)
    before = total if isinstance(total, Mapping) else dict.fromkeys(reward, 0.0)
    return {agent: before[agent] + float(part) for agent, part in reward.items()}


def _holds_for_all(value: Any) -> bool:
    return all(value.values()) if isinstance(value, Mapping) else bool(value)
