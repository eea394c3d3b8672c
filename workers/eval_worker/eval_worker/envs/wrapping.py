"""The wrappers that a script may name: those of Gymnasium, MiniGrid, mosaic-multigrid and this package.

A name is imported, so an arbitrary one would run arbitrary code.
"""

import difflib
import importlib
import inspect
from typing import Any

from mosaic_sdk.config import ConfigError

from eval_worker.envs.choice import Wrapping

MODULES = ("gymnasium.wrappers", "minigrid.wrappers", "mosaic_multigrid.wrappers", "eval_worker.wrappers")


def wrap(env: Any, wrappings: tuple[Wrapping, ...]) -> Any:
    """`env` in these wrappers, the first one innermost. ConfigError if one does not exist or does not fit."""
    for one in wrappings:
        wrapper = find_wrapper(one.name)
        try:
            env = wrapper(env, **one.kwargs)
        except Exception as error:  # third-party code, which may raise anything about an env that does not fit
            raise ConfigError(
                f"env.wrappers: {one.name} cannot be used here: {type(error).__name__}: {error}."
            ) from error
    return env


def find_wrapper(name: str) -> Any:
    module_name, _, class_name = name.rpartition(".")
    if module_name not in MODULES:
        known = ", ".join(f"{module}.*" for module in MODULES)
        raise ConfigError(f"env.wrappers: {name!r} is not allowed. Choose from: {known}.")
    module = importlib.import_module(module_name)
    wrapper = getattr(module, class_name, None)
    if not inspect.isclass(wrapper) or not hasattr(wrapper, "step"):
        close = difflib.get_close_matches(class_name, _wrappers_in(module), 1)
        hint = f" Did you mean {module_name}.{close[0]}?" if close else ""
        raise ConfigError(f"env.wrappers: there is no wrapper {name!r}.{hint}")
    return wrapper


def _wrappers_in(module: Any) -> list[str]:
    return [name for name, value in vars(module).items() if inspect.isclass(value) and hasattr(value, "step")]
