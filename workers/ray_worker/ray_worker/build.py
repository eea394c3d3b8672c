"""RLlib's algorithm, made from the settings of a run."""

import functools
import logging
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.library.frames import unshown

from ray_worker import algorithms, fastlane
from ray_worker.config import PER_AGENT, SHARED, RayWorkerConfig
from ray_worker.envs import is_multi_agent, make_env
from ray_worker.telemetry import Watch

ENV = "mosaic"  # the name under which RLlib's env runners create it
SHARED_POLICY = "shared"


def build_algorithm(config: RayWorkerConfig, watch: Watch, scratch: str) -> Any:
    """The algorithm, ready to train. `scratch`: a folder for what RLlib writes beside its results."""
    from ray.tune.registry import register_env
    from ray.tune.trainable import trainable

    trainable.DEFAULT_STORAGE_PATH = scratch  # ~/ray_results otherwise; every algorithm creates an empty folder in it
    quieten()
    register_env(ENV, functools.partial(create_env, config.to_dict()))
    made = make_config(config, watch)
    try:
        return made.build_algo()
    except ConfigError:
        raise
    except (ValueError, NotImplementedError, AssertionError) as error:
        # RLlib's checks of a config raise these; their first line says what is wrong.
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ConfigError(f"RLlib's {config.algo} cannot train {config.env_id}: {reason}") from error


def quieten() -> None:
    """Ray sets the level of its logger when it is imported. Its warnings are about RLlib's own deprecated calls."""
    logging.getLogger("ray").setLevel(logging.ERROR)


def make_config(config: RayWorkerConfig, watch: Watch) -> Any:
    """RLlib's AlgorithmConfig."""
    params = config.algo_params
    fragment = {name: params[name] for name in ("rollout_fragment_length",) if name in params}
    made = algorithms.config_class(config.algo)()
    made.environment(ENV).framework("torch")
    made.env_runners(
        num_env_runners=config.num_env_runners, num_envs_per_env_runner=config.num_envs_per_env_runner, **fragment
    )
    made.learners(num_learners=config.num_learners, num_gpus_per_learner=config.num_gpus_per_learner)
    made.training(**{name: value for name, value in params.items() if name not in fragment})
    made.rl_module(model_config=_model_config(config))
    # By default some algorithms end an iteration after a second: then the same seed would not give the same training.
    made.reporting(min_time_s_per_iteration=0, min_sample_timesteps_per_iteration=config.report_every)
    made.debugging(seed=config.seed, log_level="ERROR")
    made.callbacks(on_episode_step=watch.on_episode_step, on_episode_end=watch.on_episode_end)
    if is_multi_agent(config.env_id):
        made.multi_agent(**_policies(config))
    return made


def _model_config(config: RayWorkerConfig) -> Any:
    from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

    return DefaultModelConfig(**config.model_config) if config.model_config else {}


def _policies(config: RayWorkerConfig) -> dict[str, Any]:
    with unshown():
        with_spaces = make_env(config)
    agents = with_spaces.possible_agents
    observations, actions = with_spaces.observation_spaces, with_spaces.action_spaces
    with_spaces.close()
    if config.policies == PER_AGENT:
        return {"policies": set(agents), "policy_mapping_fn": own_policy}
    first = agents[0]
    other = next(
        (one for one in agents if (observations[one], actions[one]) != (observations[first], actions[first])), ""
    )
    if other:
        raise ConfigError(
            f"policies: {first} and {other} of {config.env_id} have different spaces, so they cannot share one policy. "
            f"Set policies={PER_AGENT}."
        )
    return {"policies": {SHARED_POLICY}, "policy_mapping_fn": shared_policy}


def shared_policy(agent_id: str, *args: Any, **more: Any) -> str:
    return SHARED_POLICY


def own_policy(agent_id: str, *args: Any, **more: Any) -> str:
    return str(agent_id)


def policy_of(config: RayWorkerConfig, agent_id: str) -> str:
    """The name of an agent's policy in a checkpoint."""
    if not is_multi_agent(config.env_id):
        return "default_policy"
    return shared_policy(agent_id) if config.policies == SHARED else own_policy(agent_id)


def create_env(settings: dict[str, Any], context: Any) -> Any:
    """Called by each env runner, in its own process."""
    fastlane.show_only_first(int(getattr(context, "worker_index", 0)))
    return make_env(RayWorkerConfig.from_dict(settings))
