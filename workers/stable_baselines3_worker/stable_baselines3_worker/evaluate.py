"""mode=policy_eval: plays a checkpoint's policy on seeds that its training did not use."""

from typing import Any

from mosaic_sdk import emit
from mosaic_sdk.evaluation import EVAL_MEAN_RETURN, Evaluation, seeds_from
from mosaic_sdk.heartbeat import Heartbeat

from stable_baselines3_worker import WORKER
from stable_baselines3_worker.analytics import write_manifest
from stable_baselines3_worker.config import StableBaselines3Config


def evaluate(config: StableBaselines3Config) -> dict[str, Any]:
    # Without a seed in the config, the evaluation's own: not the one that the checkpoint was trained with.
    seeds = seeds_from(config.seed if "seed" in config.given else None, config.eval_episodes)
    with Heartbeat(total=len(seeds)) as heart:
        from stable_baselines3_worker.play import Actor, load_stage, play  # imports torch

        whole, vec_env, policy, found = load_stage(config, config.eval_capture_video)
        emit.checkpoint_loaded(found.path, step=found.step)
        evaluation = Evaluation(
            run_id=config.run_id,
            worker=WORKER,
            env_id=whole.env_id,
            algo=whole.algo,
            checkpoint=found.path,
            deterministic=whole.eval_deterministic,
        )
        actor = Actor(policy, whole)
        for seed in seeds:
            evaluation.add(seed, *play(actor, vec_env, seed))
            heart.advance()
        vec_env.close()
    emit.metric(EVAL_MEAN_RETURN, evaluation.mean_return, step=found.step or 0)
    evaluation.write(checkpoint_step=found.step)
    summary = {"algo": whole.algo, "env_id": whole.env_id, **evaluation.statistics()}
    write_manifest(whole, summary)
    return summary
