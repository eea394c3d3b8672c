"""What a worker can do and needs: the fields of the SDK's WorkerCapabilities, and any others it likes to tell."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mosaic_sdk.contract import WorkerCapabilities

from mosaic.catalog.answers import Answers
from mosaic.catalog.workers import Catalog
from mosaic.model.errors import BadConfig
from mosaic.model.run import WorkerSpec

NAME = "capabilities_json"
MOST_BYTES = 64 << 10
_DEFAULTS = {field.name: field.default for field in fields(WorkerCapabilities)}


def read_capabilities(text: str) -> dict[str, Any]:
    """The capabilities in `text`; empty for an empty one. BadConfig names the field that is wrong."""
    if not text:
        return {}
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise BadConfig(NAME, f"is longer than {MOST_BYTES} bytes")
    try:
        told = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadConfig(NAME, f"is not valid JSON ({error})") from None
    if not isinstance(told, dict):
        raise BadConfig(NAME, 'must be a JSON object, such as {"worker_type": "my_worker"}')
    for name, value in told.items():
        _check(name, value)
    return told


def known_capabilities(answers: Answers, catalog: Catalog, spec: WorkerSpec) -> dict[str, Any]:
    """What a run's worker last told; the submit asked it. Empty for a script, or when it is unusable."""
    worker = catalog.for_module(spec.module, spec.variant, spec.name) if spec.module else None
    told = answers.remembered(worker) if worker and worker.entry_point else None
    return told.capabilities if told and _are_sound(told.capabilities) else {}


def _are_sound(told: Mapping[str, Any]) -> bool:
    try:
        read_capabilities(json.dumps(told))
    except (BadConfig, ValueError, TypeError):
        return False
    return True


def _check(name: str, value: object) -> None:
    default = _DEFAULTS.get(name)
    if name not in _DEFAULTS or (default is None and value is None):
        return
    if isinstance(default, bool):
        wanted, is_good = "true or false", isinstance(value, bool)
    elif name == "spin_s":
        wanted, is_good = "a number of 0 or more", _is_count(value) or (isinstance(value, float) and value >= 0)
    elif isinstance(default, int) or default is None:
        wanted, is_good = "a whole number of 0 or more", _is_count(value)
    elif isinstance(default, tuple):
        wanted, is_good = "a list of texts", isinstance(value, list) and all(isinstance(one, str) for one in value)
    else:
        wanted, is_good = "a text", isinstance(value, str)
    if not is_good:
        raise BadConfig(f"{NAME}: {name}", f"must be {wanted}, not {json.dumps(value)[:60]}")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a value of JSON")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
