"""From the id in a script to a Game.

CartPole-v1, ALE/Pong-v5, mymodule:MyEnv-v0             gymnasium.make
MosaicMultiGrid-C-1v1-IndAgObs-v1                       mosaic-multigrid, parallel
pettingzoo/connect_four_v3, mpe2/simple_spread_v3       PettingZoo: parallel if the game supports it, else AEC
"""

import difflib
import importlib
import importlib.util
import os
import pkgutil
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from mosaic_sdk.config import ConfigError
from mosaic_sdk.fastlane import maybe_wrap_env
from mosaic_sdk.fastlane.lane import note

from eval_worker.envs.choice import AEC, AUTO, PARALLEL, EnvChoice
from eval_worker.envs.game import Game
from eval_worker.envs.wrapping import wrap

RGB = "rgb_array"
MULTIGRID = "MosaicMultiGrid-"
# Packages that register their environments when they are imported.
_REGISTERING = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "ALE/": "ale_py", MULTIGRID: "mosaic_multigrid.envs"}
# Where the games of each prefix are.
_GAMES = {"pettingzoo": ("pettingzoo.classic", "pettingzoo.butterfly", "pettingzoo.sisl"), "mpe2": ("mpe2",)}
_VERSIONED = re.compile(r"\w+_v\d+\Z")


def make_game(choice: EnvChoice) -> Game:
    """ConfigError, in words, if there is no such environment or it cannot be created."""
    # Without these, pygame looks for a screen and a sound card.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    os.environ.setdefault("SDL_AUDIODRIVER", "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    prefix, _, name = choice.id.partition("/")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the age of an env's version and of libraries' own imports
        if _is_pettingzoo(choice.id):
            return _make_pettingzoo(choice, prefix, name)
        if choice.id.startswith(MULTIGRID):
            return _make_multigrid(choice)
        return _make_gymnasium(choice)


def is_gymnasium(env_id: str) -> bool:
    """Whether gymnasium.make creates it."""
    return not _is_pettingzoo(env_id) and not env_id.startswith(MULTIGRID)


def _is_pettingzoo(env_id: str) -> bool:
    prefix, slash, _ = env_id.partition("/")
    return bool(slash) and prefix in _GAMES


def _make_gymnasium(choice: EnvChoice) -> Game:
    import gymnasium

    from eval_worker.envs.single import SingleGame

    if choice.api != AUTO:
        raise ConfigError(f"env.api: {choice.id} is an environment of Gymnasium, which has only one API.")
    spec = find_spec(choice.id)
    # The checker warns about the env's own code, and takes time at every step.
    env = _create(
        choice, lambda **kwargs: gymnasium.make(spec, disable_env_checker=True, **kwargs), RGB in _render_modes(spec)
    )
    return SingleGame(wrap(maybe_wrap_env(env), choice.wrappers))


def _make_multigrid(choice: EnvChoice) -> Game:
    from eval_worker.envs.multigrid import MultigridParallel
    from eval_worker.envs.parallel import ParallelGame

    if choice.api == AEC:
        raise ConfigError(f"env.api: the agents of {choice.id} act at the same time: {PARALLEL}.")
    spec = find_spec(choice.id)
    # Not gymnasium.make, whose wrappers expect one agent.
    env = _create(choice, lambda **kwargs: _creator(spec)(**{**spec.kwargs, **kwargs}))
    return ParallelGame(maybe_wrap_env(MultigridParallel(wrap(env, choice.wrappers))))


def _make_pettingzoo(choice: EnvChoice, prefix: str, name: str) -> Game:
    from eval_worker.envs.parallel import ParallelGame
    from eval_worker.envs.turns import TurnGame

    if choice.wrappers:
        raise ConfigError(f"env.wrappers: {choice.id} is a PettingZoo environment, for which no wrappers are allowed.")
    module = _find_game(choice.id, prefix, name)
    is_parallel = choice.api == PARALLEL or (choice.api == AUTO and hasattr(module, "parallel_env"))
    if is_parallel and not hasattr(module, "parallel_env"):
        raise ConfigError(f"env.api: the agents of {choice.id} act one after the other: {AEC}.")
    env = maybe_wrap_env(_create(choice, module.parallel_env if is_parallel else module.env))
    return ParallelGame(env) if is_parallel else TurnGame(env)


def _create(choice: EnvChoice, create: Callable[..., Any], can_render: bool = True) -> Any:
    """The environment with rendering, or without it if it cannot render here: then it has no frames, but it plays."""
    given = dict(choice.kwargs)
    if can_render:
        try:
            return create(**{**given, "render_mode": RGB})
        except Exception as error:  # noqa: BLE001  # third-party code; if rendering is not the reason, it fails again
            reason = _words(error)
    else:
        reason = "it has no render mode rgb_array."
    try:
        env = create(**given)
    except Exception as error:
        raise ConfigError(f"{choice.id} cannot be created: {_words(error)}") from error
    note(f"no pictures of {choice.id}: {reason}")
    return env


def _words(error: Exception) -> str:
    text = str(error).strip().rstrip(".").partition("\n")[0]
    return f"{type(error).__name__}: {text}." if text else f"{type(error).__name__}."


def find_spec(env_id: str) -> Any:
    """The registration of an id; ConfigError with similar ids if there is none."""
    import gymnasium

    module, _, name = env_id.rpartition(":")
    _import_registering(env_id, module)
    if name not in gymnasium.registry:
        _import_all()  # Atari's old names, and the names to suggest
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error:
        raise ConfigError(f"There is no environment {env_id!r}.{_similar(name, gymnasium.registry)}") from None


def _import_registering(env_id: str, module: str) -> None:
    packages = [module] if module else [home for prefix, home in _REGISTERING.items() if env_id.startswith(prefix)]
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            raise ConfigError(f"{env_id} needs the module {package}, which cannot be imported: {error}.") from None


def _import_all() -> None:
    for package in set(_REGISTERING.values()):
        if importlib.util.find_spec(package.partition(".")[0]) is not None:
            importlib.import_module(package)


def _similar(name: str, known: Mapping[str, Any] | list[str]) -> str:
    lowered = {one.lower(): one for one in known}
    close = [lowered[one] for one in difflib.get_close_matches(name.lower(), list(lowered), 3, 0.6)]
    return f" Did you mean {' or '.join([', '.join(close[:-1]), close[-1]] if close[1:] else close)}?" if close else ""


def _render_modes(spec: Any) -> list[str]:
    return list((getattr(_creator(spec), "metadata", None) or {}).get("render_modes") or ())


def _creator(spec: Any) -> Any:
    from gymnasium.envs.registration import load_env_creator

    return spec.entry_point if callable(spec.entry_point) else load_env_creator(spec.entry_point)


def _find_game(env_id: str, prefix: str, name: str) -> ModuleType:
    homes = {game: home for home in _GAMES[prefix] for game in _games_in(home)}
    if name not in homes:
        raise ConfigError(
            f"There is no environment {env_id!r}.{_similar(env_id, [f'{prefix}/{one}' for one in homes])}"
        )
    try:
        return importlib.import_module(f"{homes[name]}.{name}")
    except ImportError as error:
        raise ConfigError(f"{env_id} cannot be imported: {error}.") from None


def _games_in(home: str) -> Iterator[str]:
    package = importlib.import_module(home)
    return (found.name for found in pkgutil.iter_modules(package.__path__) if _VERSIONED.match(found.name))
