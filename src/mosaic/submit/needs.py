"""Limits and resources that the config leaves out: from the worker's capabilities, else MOSAIC's defaults."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mosaic.model.machine import MAX_MEMORY_MB, Machine
from mosaic.model.run import Limits, ResourceRequest, RunConfig
from mosaic.submit.operators import RL, WORKER
from mosaic.submit.section import MAX_SECONDS

DEFAULT_MEMORY_MB = 512  # for a script, or a worker without a valid estimate
COMPUTING = (RL, WORKER)  # kinds of operators; an LLM computes on its server


def with_worker_needs(
    config: RunConfig,
    capabilities: Mapping[str, Any],
    machine: Machine,
    of_operators: Sequence[Mapping[str, Any]] = (),
) -> RunConfig:
    """The config with the limits and resources of its worker. An invalid capability is ignored.

    `of_operators`: the capabilities of the worker of each operator; all of them run at the same time.
    """
    payload = config.raw.get("payload") or {}
    said = payload.get("resources") or {}
    return replace(
        config,
        limits=_limits(config.limits, payload.get("limits") or {}, capabilities),
        resources=ResourceRequest(
            config.resources.cpus if said.get("cpus") is not None else _cpus(config, machine),
            config.resources.memory_mb
            if said.get("memory_mb") is not None
            else _memory_mb([capabilities, *of_operators], machine),
        ),
    )


def _limits(limits: Limits, said: Mapping[str, Any], capabilities: Mapping[str, Any]) -> Limits:
    spin_s = _number(capabilities.get("spin_s"), MAX_SECONDS)
    if spin_s is None or said.get("spin_s") is not None:
        return limits
    return replace(limits, spin_s=spin_s)


def _cpus(config: RunConfig, machine: Machine) -> float:
    """One, and one more for each operator that computes here, up to half of the machine.

    Operators take their steps together and then wait for each other, so fewer CPUs make an evaluation slower. A larger
    request would keep it waiting for trainings that run for days.
    """
    computing = sum(operator.kind in COMPUTING for operator in config.operators.values())
    cpus = min(config.resources.cpus + computing, max(config.resources.cpus, machine.cpus / 2))
    # An estimate is not a request: one that exceeds the machine is reduced to the machine, not refused.
    return min(cpus, machine.cpus)


def _memory_mb(capabilities: Sequence[Mapping[str, Any]], machine: Machine) -> int:
    """The sum of the estimates, reduced to the machine in the same way."""
    estimates = (_number(each.get("estimated_memory_mb"), MAX_MEMORY_MB) or DEFAULT_MEMORY_MB for each in capabilities)
    return min(int(sum(estimates)), machine.memory_mb)


def _number(value: object, most: float) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= most else None
