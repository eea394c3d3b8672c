"""A training of a few seconds for every algorithm, with a checkpoint halfway. Used by tests and by the docs' table."""

from typing import Any

from cleanrl_worker.registry import ATARI, ENVPOOL, IMAGE, PLAYERS, PROCGEN, Algorithm

_BATCHES = {"num_envs": 2, "num_steps": 32, "num_minibatches": 2, "update_epochs": 1}
_TAUGHT = {"teacher_steps": 60, "offline_steps": 20, "learning_starts": 20}
_SPECIAL: dict[str, dict[str, Any]] = {
    "ppo_rnd_envpool": {"num_iterations_obs_norm_init": 1},
    "ppg_procgen": {"n_iteration": 1, "e_policy": 1, "e_auxiliary": 1, "num_aux_rollouts": 1, "v_value": 1},
    "ppo_trxl": {"window": 8},
    "qdagger_dqn_atari_impalacnn": _TAUGHT,
    "qdagger_dqn_atari_jax_impalacnn": _TAUGHT,
    "sac_atari": {"batch_size": 8, "update_frequency": 4},
}


def teacher_of(algorithm: Algorithm) -> str:
    """The algorithm whose run must come first, because `teacher_path` is its checkpoint; empty for most."""
    if not algorithm.name.startswith("qdagger"):
        return ""
    return "dqn_atari_jax" if algorithm.variant == "jax" else "dqn_atari"


def short_config(algorithm: Algorithm) -> dict[str, Any]:
    """A config in which `extras.checkpoint_every` is half of the steps."""
    is_on_policy = algorithm.name.startswith(("ppo", "ppg", "rpo", "pqn"))
    is_image = algorithm.takes in (ATARI, ENVPOOL, IMAGE, PLAYERS, PROCGEN)
    if is_on_policy:
        params: dict[str, Any] = dict(_BATCHES) if is_image else {"num_envs": 2, "num_steps": 128}
        steps = 128 if is_image else 512
    else:
        params = {"buffer_size": 1000, "learning_starts": 60 if is_image else 100, "batch_size": 16}
        steps = 160 if is_image else 400
    if algorithm.name in ("ppg_procgen",):
        params.pop("update_epochs", None)
    params.update(_SPECIAL.get(algorithm.name, {}))
    return {
        "algo": algorithm.name,
        "env_id": algorithm.env_id,
        "total_timesteps": steps,
        "seed": 1,
        "extras": {"checkpoint_every": steps // 2, "algo_params": params},
    }
