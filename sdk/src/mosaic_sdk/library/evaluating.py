"""mode=policy_eval: a checkpoint's policy on seeds that its training did not use."""

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Protocol

from mosaic_sdk import emit
from mosaic_sdk.checkpoints import Checkpoint
from mosaic_sdk.evaluation import EVAL_MEAN_RETURN, Evaluation, seeds_from
from mosaic_sdk.heartbeat import Heartbeat
from mosaic_sdk.library.settings import LibrarySettings
from mosaic_sdk.library.training import write_manifest


class Played(NamedTuple):
    """An episode; `more`: further columns of its row."""

    total_return: float
    length: int
    terminated: bool
    truncated: bool
    more: Mapping[str, Any] = {}


class Stage(Protocol):
    """A checkpoint's policy in an environment with the wrappers of its training."""

    config: Any  # the settings of the evaluation, filled with those of the training
    found: Checkpoint

    def play(self, seed: int) -> Played: ...
    def close(self) -> None: ...


def evaluate(config: LibrarySettings, worker: str, load: Callable[[], Stage]) -> Dict[str, Any]:
    """Play, report, write eval_summary.json; returns the statistics. `load` may import the library."""
    seeds = seeds_of(config)
    with Heartbeat(total=len(seeds)) as heart:
        stage = load()
        found = new_evaluation(stage.config, worker, stage.found)
        for seed in seeds:
            played = stage.play(seed)
            found.add(seed, *played[:4], **played.more)
            heart.advance()
        stage.close()
    return finish(found, stage.config, worker, stage.found)


def seeds_of(config: LibrarySettings) -> List[int]:
    """The given seed and those after it; without one the evaluation's own, not those that the policy was trained on."""
    return seeds_from(config.seed if "seed" in config.given else None, config.eval_episodes)


def new_evaluation(config: LibrarySettings, worker: str, found: Checkpoint, **more: Any) -> Evaluation:
    emit.checkpoint_loaded(found.path, step=found.step)
    about = {"deterministic": getattr(config, "eval_deterministic", True), **more}
    return Evaluation(
        run_id=config.run_id, worker=worker, env_id=config.env_id, algo=config.algo, checkpoint=found.path, **about
    )


def finish(
    evaluation: Evaluation, config: LibrarySettings, worker: str, found: Checkpoint, **more: Any
) -> Dict[str, Any]:
    """Report the mean, write eval_summary.json and analytics.json; returns the summary."""
    emit.metric(EVAL_MEAN_RETURN, evaluation.mean_return, step=found.step or 0)
    evaluation.write(checkpoint_step=found.step)
    summary = {"algo": config.algo, "env_id": config.env_id, **evaluation.statistics(), "checkpoint_step": found.step}
    write_manifest(config, worker, summary, **more)
    return summary
