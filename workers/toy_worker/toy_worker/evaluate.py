"""Evaluation of a toy policy: its skill does not change, so the same state and seeds give the same returns."""

from typing import Any, Dict, List

from mosaic_sdk.evaluation import Evaluation, seeds_from

from toy_worker.checkpoint import WORKER, load
from toy_worker.config import ToyConfig
from toy_worker.learning import ENV_ID, Noise
from toy_worker.telemetry import Telemetry


def evaluate(state: Dict[str, Any], config: ToyConfig, found: Evaluation, seeds: List[int]) -> Evaluation:
    """Play one episode for each seed."""
    for seed in seeds:
        found.add(seed, _play(state["skill"], config.episode_length, Noise(seed)), config.episode_length, True, False)
    return found


def _play(level: float, length: int, noise: Noise) -> float:
    return sum(level + 0.2 * noise.next() for _ in range(length))


def run_evaluation(config: ToyConfig, telemetry: Telemetry) -> Dict[str, Any]:
    """mode=policy_eval: evaluate a checkpoint and write eval_summary.json."""
    state = load(config.checkpoint)
    telemetry.checkpoint_loaded(config.checkpoint, step=state["step"])
    about: Dict[str, Any] = {
        "run_id": config.run_id,
        "worker": WORKER,
        "env_id": ENV_ID,
        "checkpoint": config.checkpoint,
    }
    found = Evaluation(emitter=telemetry, **about)
    evaluate(state, config, found, seeds_from(config.seed, config.eval_episodes))
    found.write(checkpoint_step=state["step"])
    return {**found.statistics(), "checkpoint_step": state["step"]}
