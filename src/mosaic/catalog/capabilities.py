"""What a worker can do and what it needs: the fields of the SDK's WorkerCapabilities, and any others."""

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
    """The capabilities in `text`; empty for an empty text. BadConfig names the invalid field."""
    if not text:
        return {}
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise BadConfig(NAME, f"is longer than {MOST_BYTES} bytes")
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadConfig(NAME, f"is not valid JSON ({error})") from None
    if not isinstance(found, dict):
        raise BadConfig(NAME, 'must be a JSON object, such as {"worker_type": "my_worker"}')
    for name, value in found.items():
        _check(name, value)
    return found


def known_capabilities(answers: Answers, catalog: Catalog, spec: WorkerSpec) -> dict[str, Any]:
    """The capabilities that a run's worker last reported, at the submit. Empty for a script, or if they are invalid."""
    worker = catalog.for_module(spec.module, spec.variant, spec.name) if spec.module and not spec.python else None
    answer = answers.remembered(worker) if worker and worker.entry_point else None
    return answer.capabilities if answer and _are_valid(answer.capabilities) else {}


def _are_valid(capabilities: Mapping[str, Any]) -> bool:
    try:
        read_capabilities(json.dumps(capabilities))
    except (BadConfig, ValueError, TypeError):
        return False
    return True


def _check(name: str, value: object) -> None:
    default = _DEFAULTS.get(name)
    if name not in _DEFAULTS or (default is None and value is None):
        return
    if isinstance(default, bool):
        expected, is_good = "true or false", isinstance(value, bool)
    elif name == "spin_s":
        expected, is_good = "a non-negative number", _is_count(value) or (isinstance(value, float) and value >= 0)
    elif isinstance(default, int) or default is None:
        expected, is_good = "a non-negative integer", _is_count(value)
    elif isinstance(default, tuple):
        expected, is_good = "a list of strings", isinstance(value, list) and all(isinstance(one, str) for one in value)
    else:
        expected, is_good = "a string", isinstance(value, str)
    if not is_good:
        raise BadConfig(f"{NAME}: {name}", f"must be {expected}, not {json.dumps(value)[:60]}")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not valid in JSON")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
