"""Errors about envs: a missing library, an unknown name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from mosaic_sdk.config import ConfigError


class BadEnv(ConfigError, ValueError):
    """An env that is unavailable; the text says what to do."""


def library(module: str, package: str) -> Any:
    """A suite's library, or BadEnv that names the package to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise BadEnv(
            f"env: it needs {error.name}, which is not installed here (it is part of {package}). Install the worker "
            "with its lock file: mosaic worker install dreamer. Or install the package in the worker's environment: "
            f"pip install {package}"
        ) from None


def no_such_env(asked: str, known: Iterable[str]) -> BadEnv:
    names = sorted(known)
    near = difflib.get_close_matches(asked, names, n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Available: {', '.join(names[:8])} …"
    return BadEnv(f"env: there is no environment {asked}. {hint}")
