"""Whether an algorithm can be trained on an environment, checked before the training starts."""

import difflib
import importlib
import warnings
from collections.abc import Iterable
from typing import Any

from mosaic_sdk.config import ConfigError

from cleanrl_worker.registry import ATARI, CONTINUOUS, DISCRETE, ENVPOOL, IMAGE, PLAYERS, PROCGEN, VECTOR, Algorithm

_OTHER_ACTIONS = {
    DISCRETE: "ppo_continuous_action, sac_continuous_action or another algorithm for continuous actions",
    CONTINUOUS: "ppo, dqn or another algorithm for discrete actions",
}
_TOYS = ("CatchPixels-v0", "RecallCue-v0")  # toys.py registers them
TOY_PIXELS = _TOYS[0]
_ALE_MARKS = ("NoFrameskip", "ALE/", "-ram", "Deterministic-v")


def check_env(algorithm: Algorithm, env_id: str) -> None:
    """ConfigError with the reason if `algorithm` cannot be trained on the environment."""
    if algorithm.takes == PROCGEN:
        _require_known(env_id, importlib.import_module("procgen.env").ENV_NAMES, "Procgen", algorithm)
    elif algorithm.takes == ENVPOOL and algorithm.is_ours and env_id == TOY_PIXELS:
        register_for(env_id)
    elif algorithm.takes == ENVPOOL:
        _require_known(env_id, importlib.import_module("envpool").list_all_envs(), "envpool", algorithm)
    elif algorithm.takes == PLAYERS:
        names = importlib.import_module("cleanrl_worker.wrappers.players").game_names()
        _require_known(env_id, names, "PettingZoo's Atari", algorithm)
    elif algorithm.takes:
        env = make_bare(env_id)
        try:
            _check_spaces(algorithm, env_id, env)
        finally:
            env.close()


def make_bare(env_id: str) -> Any:
    """The environment without frames; ConfigError with the closest names if it does not exist."""
    register_for(env_id)
    import gymnasium

    # Not MOSAIC's import hook: it would show this env instead of the training's first one.
    make = getattr(gymnasium.make, "__wrapped__", gymnasium.make)
    try:
        return make(env_id)
    except gymnasium.error.UnregisteredEnv:
        near = difflib.get_close_matches(env_id, list(gymnasium.registry), n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(f"env_id: there is no environment {env_id!r}.{hint}") from None
    except Exception as error:  # noqa: BLE001  # an env's constructor is third-party code and may raise anything
        raise ConfigError(f"env_id: {env_id} cannot be created: {type(error).__name__}: {error}") from None


def register_for(env_id: str) -> None:
    """Import the package that registers the environment, if Gymnasium's plugins do not."""
    with warnings.catch_warnings():
        # ale-py and shimmy warn about importing each other here; both are complete once they are used.
        warnings.simplefilter("ignore")
        import gymnasium

    if env_id not in gymnasium.registry and any(mark in env_id for mark in _ALE_MARKS):
        importlib.import_module("ale_py")
    if env_id in _TOYS:
        importlib.import_module("cleanrl_worker.toys")


def flat(env: Any) -> Any:
    """An environment whose observations are vectors: MiniGrid's cells or all parts of a Dict, flattened."""
    from gymnasium import spaces, wrappers

    space = env.observation_space
    if not isinstance(space, spaces.Dict):
        return env
    if "mission" in space.spaces:
        env = importlib.import_module("minigrid.wrappers").ImgObsWrapper(env)
    return wrappers.FlattenObservation(env)


def _check_spaces(algorithm: Algorithm, env_id: str, env: Any) -> None:
    from gymnasium import spaces

    name = algorithm.name
    actions = DISCRETE if isinstance(env.action_space, spaces.Discrete) else CONTINUOUS
    if not isinstance(env.action_space, (spaces.Discrete, spaces.Box)):
        raise ConfigError(f"env_id: {env_id} has the action space {env.action_space}, which {name} does not support.")
    if actions != algorithm.actions:
        raise ConfigError(
            f"env_id: {env_id} has {actions} actions, but {name} needs {algorithm.actions} ones. "
            f"Use {_OTHER_ACTIONS[algorithm.actions]}."
        )
    if algorithm.takes == ATARI and not hasattr(env.unwrapped, "get_action_meanings"):
        raise ConfigError(
            f"env_id: {name} needs an Atari game (such as {algorithm.env_id}), but {env_id} is not one. "
            f"Use {name.replace('_atari', '').replace('_lstm', '').replace('_multigpu', '')}."
        )
    if algorithm.takes == IMAGE:
        _check_image(algorithm, env_id, env.observation_space)
    if algorithm.takes == VECTOR:
        _check_vector(algorithm, env_id, env.observation_space)


def _check_image(algorithm: Algorithm, env_id: str, space: Any) -> None:
    shape: tuple[int, ...] = getattr(space, "shape", None) or ()
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[-1] not in (1, 3)):
        raise ConfigError(
            f"env_id: {algorithm.name} needs images (height, width and perhaps colours), but {env_id} returns {space}. "
            "Use an algorithm for vectors, such as dqn or ppo."
        )


def _check_vector(algorithm: Algorithm, env_id: str, space: Any) -> None:
    from gymnasium import spaces

    shape = getattr(space, "shape", None)
    if isinstance(space, spaces.Dict):
        return  # flattened, see above
    if (
        isinstance(space, spaces.Box)
        and shape is not None
        and len(shape) > 1
        and algorithm.module.startswith("cleanrl.")
    ):
        raise ConfigError(
            f"env_id: {env_id} returns images of shape {shape}, but {algorithm.name} needs vectors. "
            "Use an algorithm for images, such as ppo_atari or dqn_atari."
        )
    if not isinstance(space, spaces.Box) and algorithm.module.startswith("cleanrl."):
        raise ConfigError(f"env_id: {env_id} returns {space}, but {algorithm.name} needs vectors.")


def _require_known(env_id: str, known: Iterable[str], library: str, algorithm: Algorithm) -> None:
    names = list(known)
    if env_id not in names:
        near = difflib.get_close_matches(env_id, names, n=3)
        hint = " or ".join(near) if near else algorithm.env_id
        raise ConfigError(
            f"env_id: {algorithm.name} needs one of {library}'s environments, but {env_id} is not one. "
            f"Did you mean {hint}?"
        )
