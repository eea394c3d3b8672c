"""A checkpoint whose values of actions teach another network: QDagger's teacher.

It is a checkpoint of this worker, from a run on the same environment with an algorithm that learns the values of
actions from images, with torch or JAX. Nothing is downloaded.
"""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from mosaic_sdk.config import ConfigError
from numpy.typing import NDArray

Values = Callable[[NDArray[Any]], NDArray[Any]]  # pictures → (batch, actions)


def load_teacher(path: str, env_id: str, envs: Any) -> Values:
    """The teacher's values of actions; ConfigError if the checkpoint cannot teach this environment."""
    from cleanrl_worker import registry
    from cleanrl_worker.checkpoints import load_checkpoint

    if not path:
        raise ConfigError(
            "extras.algo_params.teacher_path is missing: it is the folder or a checkpoint of a run that trained a "
            f"teacher on {env_id}, for example with algo=dqn_atari."
        )
    found = load_checkpoint(path)
    found.require(env_id=env_id)
    algorithm = registry.find(found.algo)
    names = set(found.modules)
    is_distribution = "n_atoms" in found.params and not algorithm.is_ours
    if not names & {"q_network", "q_state"} or is_distribution:
        raise ConfigError(
            f"extras.algo_params.teacher_path: {found.path} is of {found.algo}, which has no values of actions to "
            "teach with. Use a run of dqn_atari, rainbow_atari or another algorithm that learns them."
        )
    script = _script_of(algorithm)
    if hasattr(script.QNetwork, "first_memory"):
        raise ConfigError(f"extras.algo_params.teacher_path: {found.algo} needs a memory, which a teacher cannot have.")
    return _of_jax(found, script, envs) if "q_state" in names else _of_torch(found, script, envs)


def _script_of(algorithm: Any) -> Any:
    from cleanrl_worker.gyms import choose_gym
    from cleanrl_worker.policy import import_script

    if algorithm.is_ours:
        return importlib.import_module(algorithm.module)
    choose_gym(algorithm)
    return import_script(algorithm)


def _of_torch(found: Any, script: Any, envs: Any) -> Values:
    import torch

    from cleanrl_worker.checkpoints import put_weights
    from cleanrl_worker.policy import other_arguments

    network = script.QNetwork(envs, **other_arguments(script.QNetwork, found.params))
    put_weights("q_network", network, found.modules["q_network"], found.path)
    network.eval()

    @torch.no_grad()
    def values(pictures: NDArray[Any]) -> NDArray[Any]:
        answer: NDArray[Any] = network(torch.as_tensor(np.asarray(pictures))).numpy()
        return answer

    return values


def _of_jax(found: Any, script: Any, envs: Any) -> Values:
    import jax
    import jax.numpy as jnp

    network = script.QNetwork(action_dim=int(envs.single_action_space.n))
    params = jax.tree_util.tree_map(jnp.asarray, found.modules["q_state"]["params"])
    apply = jax.jit(network.apply)
    return lambda pictures: np.asarray(apply(params, np.asarray(pictures)))
