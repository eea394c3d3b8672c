"""The worker's config file: the flat one the daemon writes, or a whole trainer config with the worker's part inside."""

import json
import os
from typing import Any, Dict, Union

from mosaic_sdk.names import WorkerEnv


class ConfigError(Exception):
    """A config that cannot be used; the text says which file and what to do."""


def load_config(path: "Union[str, os.PathLike[str]]") -> Dict[str, Any]:
    """The worker's keys from `path`, with `run_id` filled in from the trainer config or the environment if known."""
    document = _read_object(os.fspath(path))
    config = _worker_part(document, os.fspath(path))
    run_id = os.environ.get(WorkerEnv.RUN_ID)
    if run_id:
        config.setdefault("run_id", run_id)
    return config


def _read_object(path: str) -> Dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise ConfigError(
            f"Cannot read the config {path}: {error.strerror}. Give an existing file to --config."
        ) from None
    except ValueError as error:
        raise ConfigError(f"The config {path} is not JSON ({error}). Correct it, or write it anew.") from None
    except RecursionError:
        raise ConfigError(f"The config {path} is nested too deeply to be read. Make it flatter.") from None
    if not isinstance(document, dict):
        raise ConfigError(f'The config {path} holds {_kind(document)}. It must be a JSON object: {{"key": value}}.')
    return document


def _worker_part(document: Dict[str, Any], path: str) -> Dict[str, Any]:
    metadata = document.get("metadata")
    worker = metadata.get("worker") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(worker, dict):
        return document
    config = worker.get("config", {})
    if not isinstance(config, dict):
        raise ConfigError(f"metadata.worker.config in {path} is {_kind(config)}. It must be a JSON object.")
    for key, value in (("run_id", metadata.get("run_id")), ("worker_id", worker.get("worker_id"))):
        if value:
            config.setdefault(key, value)
    return config


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
