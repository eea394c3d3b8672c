"""mode=policy_eval: plays a checkpoint's policy on seeds that its training did not use; writes eval_summary.json."""

from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.evaluation import EVAL_MEAN_RETURN, Evaluation, seeds_from
from mosaic_sdk.heartbeat import Heartbeat

from ray_worker import WORKER, checkpoint
from ray_worker.analytics import write_manifest
from ray_worker.config import RayWorkerConfig
from ray_worker.runtime import prepare_process


def evaluate(config: RayWorkerConfig) -> dict[str, Any]:
    # Without a seed in the config, the evaluation's own: not the one that the checkpoint was trained with.
    seeds = seeds_from(config.seed if "seed" in config.given else None, config.eval_episodes)
    found = checkpoint.find(config)
    whole = config.filled_from(found.settings)
    with Heartbeat(total=len(seeds)) as heart:
        prepare_process(config)
        from ray_worker.envs import make_env  # imports the libraries
        from ray_worker.play import play
        from ray_worker.policy import Policies

        policies, env = Policies(found, whole), make_env(whole)
        emit.checkpoint_loaded(found.path, step=found.step)
        evaluation = _new_evaluation(whole, found.path)
        for seed in seeds:
            played = play(policies, env, seed, whole.eval_max_episode_steps)
            several: dict[str, Any] = {"agent_returns": played.agent_returns} if len(played.agent_returns) > 1 else {}
            evaluation.add(seed, *played[:4], **several)
            heart.advance()
        env.close()
    emit.metric(EVAL_MEAN_RETURN, evaluation.mean_return, step=found.step or 0)
    evaluation.write(checkpoint_step=found.step)
    summary = {"algo": whole.algo, "env_id": whole.env_id, **evaluation.statistics()}
    write_manifest(whole, summary)
    return summary


def _new_evaluation(config: RayWorkerConfig, path: str) -> Evaluation:
    return Evaluation(
        run_id=config.run_id,
        worker=WORKER,
        env_id=config.env_id,
        algo=config.algo,
        checkpoint=path,
        deterministic=config.eval_deterministic,
    )
