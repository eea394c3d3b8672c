"""Evaluation of a toy policy: its skill stands still, so the same state and seeds give the same returns."""

import os
from typing import Any, Dict, List

from mosaic_sdk.config import ConfigError
from mosaic_sdk.names import WorkerEnv

from toy_worker.checkpoint import load, write_whole
from toy_worker.config import ToyConfig
from toy_worker.learning import Noise
from toy_worker.telemetry import Telemetry

FIRST_SEED = 1_000_000  # no training uses these


def play(state: Dict[str, Any], length: int, seeds: List[int]) -> List[float]:
    """The return of one episode for each seed."""
    return [_episode(state["skill"], length, Noise(seed)) for seed in seeds]


def _episode(level: float, length: int, noise: Noise) -> float:
    return sum(level + 0.2 * noise.next() for _ in range(length))


def run_evaluation(config: ToyConfig, tell: Telemetry) -> Dict[str, Any]:
    """mode=policy_eval: play a checkpoint and write eval_summary.json."""
    if not config.checkpoint:
        raise ConfigError("checkpoint is missing: mode policy_eval needs the checkpoint to play.")
    state = load(config.checkpoint)
    tell.checkpoint_loaded(config.checkpoint, step=state["step"])
    first = FIRST_SEED if config.seed is None else config.seed
    seeds = [first + number for number in range(config.eval_episodes)]
    returns = play(state, config.episode_length, seeds)
    for number, total in enumerate(returns):
        more = {"terminated": True, "truncated": False, "episode_seed": seeds[number]}
        tell.episode(number, total, config.episode_length, **more)
    summary = {"episodes": len(returns), "avg_return": sum(returns) / len(returns), "checkpoint_step": state["step"]}
    path = os.path.join(os.environ.get(WorkerEnv.RUN_DIR, "."), "eval_summary.json")
    write_whole(os.path.abspath(path), {"version": 1, **summary, "returns": returns, "seeds": seeds})
    return summary
