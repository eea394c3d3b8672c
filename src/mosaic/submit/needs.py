"""Limits and resources that the config leaves out: from the worker's capabilities, else MOSAIC's defaults."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mosaic.model.machine import MAX_MEMORY_MB, Machine
from mosaic.model.run import Limits, ResourceRequest, RunConfig
from mosaic.submit.section import MAX_SECONDS

DEFAULT_MEMORY_MB = 512  # for a script, or a worker without a valid estimate


def with_worker_needs(config: RunConfig, capabilities: Mapping[str, Any], machine: Machine) -> RunConfig:
    """The config with the limits and resources of its worker. An invalid capability is ignored."""
    payload = config.raw.get("payload") or {}
    return replace(
        config,
        limits=_limits(config.limits, payload.get("limits") or {}, capabilities),
        resources=_resources(config.resources, payload.get("resources") or {}, capabilities, machine),
    )


def _limits(limits: Limits, said: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Limits:
    spin_s = _number(capabilities.get("spin_s"), MAX_SECONDS)
    if spin_s is None or said.get("spin_s") is not None:
        return limits
    return replace(limits, spin_s=spin_s)


def _resources(
    asked: ResourceRequest, said: Mapping[str, Any], capabilities: Mapping[str, Any], machine: Machine
) -> ResourceRequest:
    """An estimate is not a request: one that exceeds the machine is reduced to the machine, not refused."""
    cpus, memory_mb = asked.cpus, asked.memory_mb
    if said.get("cpus") is None:
        cpus = min(cpus, machine.cpus)
    if said.get("memory_mb") is None:
        estimate = _number(capabilities.get("estimated_memory_mb"), MAX_MEMORY_MB) or DEFAULT_MEMORY_MB
        memory_mb = min(int(estimate), machine.memory_mb)
    return ResourceRequest(cpus, memory_mb)


def _number(value: object, most: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= most else None
