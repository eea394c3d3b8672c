"""What a run gets where its config says nothing: what its worker said of itself, else MOSAIC's defaults."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mosaic.model.run import RunConfig
from mosaic.submit.section import MAX_SECONDS


def with_worker_needs(config: RunConfig, capabilities: Mapping[str, Any]) -> RunConfig:
    """The same run with its worker's own limits. A capability that makes no sense counts as not given."""
    spin_s = _number(capabilities.get("spin_s"), MAX_SECONDS)
    if spin_s is None or _says(config, "limits", "spin_s"):
        return config
    return replace(config, limits=replace(config.limits, spin_s=spin_s))


def _says(config: RunConfig, section: str, name: str) -> bool:
    payload = config.raw.get("payload") or {}
    return (payload.get(section) or {}).get(name) is not None


def _number(value: object, most: float) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= most else None  # type: ignore[operator, arg-type]
