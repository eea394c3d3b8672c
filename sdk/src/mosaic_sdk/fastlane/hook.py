"""What the import hook (autowrap/sitecustomize.py) does in `gymnasium.make`, `gym.make` and PettingZoo's functions."""

import contextlib
import importlib
from types import ModuleType
from typing import Any, Callable, Mapping, Tuple

from mosaic_sdk.fastlane.wrapper import is_fastlane_enabled, maybe_wrap_env


def make_shown(
    registration: ModuleType, make: Callable[..., Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """The env that `make` creates, with rendering where possible, and shown. Errors of `make` are passed on."""
    if not is_fastlane_enabled():
        return make(*args, **kwargs)
    if _should_render(registration, args, kwargs, "entry_point"):
        with contextlib.suppress(Exception):  # if make() itself fails, it fails again below, without our argument
            return maybe_wrap_env(make(*args, **{**kwargs, "render_mode": "rgb_array"}))
    return maybe_wrap_env(make(*args, **kwargs))


def make_vec_shown(
    registration: ModuleType, make_vec: Callable[..., Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """The same for vector envs; those that consist of single ones are shown already, by make()."""
    env = None
    if is_fastlane_enabled() and _should_render(registration, args, kwargs, "vector_entry_point"):
        with contextlib.suppress(Exception):
            env = make_vec(*args, **{**kwargs, "render_mode": "rgb_array"})
    env = make_vec(*args, **kwargs) if env is None else env
    return env if hasattr(env, "env_fns") else maybe_wrap_env(env)


def make_game_shown(
    module: ModuleType, make: Callable[..., Any], args: Tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """The same for PettingZoo, AEC and parallel. What a game can render is known only once it exists."""
    if not is_fastlane_enabled():
        return make(*args, **kwargs)
    if kwargs.get("render_mode") is None:
        with contextlib.suppress(Exception):  # if make() itself fails, it fails again below, without our argument
            return maybe_wrap_env(make(*args, **{**kwargs, "render_mode": "rgb_array"}))
    return maybe_wrap_env(make(*args, **kwargs))


def _should_render(registration: ModuleType, args: Tuple[Any, ...], kwargs: Mapping[str, Any], creator: str) -> bool:
    """Whether the script set no render_mode and the env supports rgb_array."""
    if kwargs.get("render_mode") is not None:
        return False
    try:
        spec = _spec(registration, args[0] if args else kwargs["id"])
        modes = _metadata(registration, getattr(spec, creator)).get("render_modes") or ()
        return spec.kwargs.get("render_mode") is None and "rgb_array" in modes
    except Exception:  # noqa: BLE001  # a registry of environments is third-party code and may raise anything
        return False  # if something is wrong, make() will raise it


def _spec(registration: ModuleType, env_id: Any) -> Any:
    if not isinstance(env_id, str):
        return env_id  # an EnvSpec already
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)  # as make() does: it registers the env
    if name not in registration.registry:
        namespace, short, version = registration.parse_env_id(name)
        if version is None:
            version = registration.find_highest_version(namespace, short)
        name = registration.get_env_id(namespace, short, version)
    return registration.registry[name]


def _metadata(registration: ModuleType, entry_point: Any) -> Mapping[str, Any]:
    load = getattr(registration, "load_env_creator", None) or registration.load
    creator = entry_point if callable(entry_point) else load(entry_point)
    return getattr(creator, "metadata", None) or {}
