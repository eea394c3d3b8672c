"""The worker's config file: the flat one that the daemon writes, or a whole trainer config that contains it."""

import json
import os
from typing import Any, Dict, Mapping, Union

from mosaic_sdk.names import WorkerEnv


class ConfigError(Exception):
    """A config that cannot be used. The text names the file or setting and says what to do."""


def load_config(path: "Union[str, os.PathLike[str]]") -> Dict[str, Any]:
    """The worker's keys from `path`, with `run_id` from the trainer config or the environment if the file has none."""
    document = _read_object(os.fspath(path))
    config = worker_part(document, os.fspath(path))
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
            f"Cannot read the config {path}: {error.strerror}. Pass an existing file to --config."
        ) from None
    except ValueError as error:
        raise ConfigError(f"The config {path} is not JSON ({error}). Correct it, or write it again.") from None
    except RecursionError:
        raise ConfigError(f"The config {path} is nested too deeply to be read. Make it flatter.") from None
    if not isinstance(document, dict):
        raise ConfigError(f'The config {path} holds {_kind(document)}. It must be a JSON object: {{"key": value}}.')
    return document


def worker_part(document: Mapping[str, Any], path: str = "the config") -> Dict[str, Any]:
    """The worker's keys of a config file: all of a flat one, or `metadata.worker.config` of a whole trainer config."""
    metadata = document.get("metadata")
    worker = metadata.get("worker") if isinstance(metadata, dict) else None
    if not isinstance(metadata, dict) or not isinstance(worker, dict):
        return dict(document)
    config = worker.get("config", {})
    if not isinstance(config, dict):
        raise ConfigError(f"metadata.worker.config in {path} is {_kind(config)}. It must be a JSON object.")
    named = {"run_id": metadata.get("run_id") or document.get("run_id"), "worker_id": worker.get("worker_id")}
    return {**{key: value for key, value in named.items() if value}, **config}


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
