"""Installs on nodes of a Ray cluster: the same job once on each of them, all at the same time."""

import json
import math
import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from mosaic.engines.errors import EngineSilent
from mosaic.engines.ray import Ray, RayJob, RayJobSpec, RayNode
from mosaic.model.errors import MosaicError

PREFIX = "mosaic_install-"  # not that of the jobs of runs: those are counted
MARK = "mosaic: "  # before what the job itself says, as in catalog/on_node.py
PAUSE_S = 1.0
SILENCE_S = 120.0  # how long the dashboard may be silent; the installs themselves go on
STOP_S = 30  # for deleting what an install has begun
KEPT_S = 3600.0  # its job is shown in Ray's list for so long at least
SHOWN_LINES = 12
_ENDED = ("STOPPED", "SUCCEEDED", "FAILED")


@dataclass
class Install:
    """On one node."""

    node: str  # as it is shown
    job: str
    shown: int = 0  # characters of its log
    result: dict[str, Any] = field(default_factory=dict)  # what the job has answered; empty while it runs
    problem: str = ""
    lines: list[str] = field(default_factory=list)  # the last ones of the log of a job that has failed


def nodes_for(ray: Ray, resource: str) -> list[RayNode]:
    """The nodes that are up, or those of them that have a custom resource. At least one."""
    found = [node for node in ray.nodes() if node.state == "alive" and (not resource or node.has(resource))]
    if not found:
        having = f" that has the resource '{resource}'" if resource else ""
        raise MosaicError(f"The cluster '{ray.cluster.name}' has no node{having}. See: mosaic machines")
    return sorted(found, key=lambda node: (node.name, node.address))


def install_on(
    ray: Ray,
    nodes: Sequence[RayNode],
    package: tuple[str, bytes],
    command: str,
    say: Callable[[str, str], None],
    pause: Callable[[float], None] = time.sleep,
) -> list[Install]:
    """How it went on each node. `say` gets a node and a line of its progress.

    If it is interrupted, the jobs are stopped.
    """
    _delete_old(ray)
    uri, group = ray.ensure_package(*package), f"{PREFIX}{time.time():.0f}-{secrets.token_hex(4)}"
    installs = [Install(name, f"{group}-{n}") for n, name in enumerate(_shown(nodes))]
    try:
        for install, node in zip(installs, nodes, strict=True):
            ray.submit(_spec(install.job, node, uri, command))
        _follow(ray, installs, say, pause)
    except BaseException:
        for install in installs:
            with suppress(MosaicError):
                ray.stop(install.job)
        raise
    return installs


def _spec(job: str, node: RayNode, uri: str, command: str) -> RayJobSpec:
    # Every node has a resource of this name. No CPU is asked for: a node that is full of runs installs all the same.
    variables = {"RAY_JOB_STOP_WAIT_TIME_S": str(STOP_S)}
    return RayJobSpec(job, command, uri, variables, cpus=0, resource=f"node:{node.address}")


def _shown(nodes: Sequence[RayNode]) -> list[str]:
    names = [node.name for node in nodes]
    return [node.name if names.count(node.name) == 1 else f"{node.name} ({node.address})" for node in nodes]


def _follow(
    ray: Ray, installs: Sequence[Install], say: Callable[[str, str], None], pause: Callable[[float], None]
) -> None:
    answers = math.inf
    while waiting := [install for install in installs if not install.result and not install.problem]:
        try:
            jobs = {job.name: job for job in ray.jobs()}
            for install in waiting:
                _look(ray, install, jobs.get(install.job), say)
            answers = time.monotonic()
        except EngineSilent as error:
            answers = min(answers, time.monotonic())
            if time.monotonic() - answers > SILENCE_S:
                raise MosaicError(f"{error} The installs go on; to see how they ended, repeat the command.") from None
        pause(PAUSE_S)


def _look(ray: Ray, install: Install, job: RayJob | None, say: Callable[[str, str], None]) -> None:
    """Say what is new in the log of a job, and note how it has ended."""
    text = ray.log(install.job) if job and job.status != "PENDING" else ""
    is_over = job is None or job.status in _ENDED
    whole = text if is_over else text[: text.rfind("\n") + 1]
    lines = [line for line in whole[install.shown :].splitlines() if line.startswith(MARK)]
    install.shown = len(whole)
    for line in lines:
        answer = _answer(line.removeprefix(MARK))
        if answer is None:
            say(install.node, line.removeprefix(MARK))
        else:
            install.result, install.problem = answer, str(answer.get("problem") or "")
    if is_over and not install.result:
        install.problem = f"its job has ended: {job.message.strip() if job else 'Ray no longer knows it'}"
    if install.problem:
        install.lines = [line for line in text.splitlines() if line.strip()][-SHOWN_LINES:]


def _answer(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _delete_old(ray: Ray) -> None:
    """Ray keeps ended jobs for ever, and sends all of them with every answer."""
    for job in ray.jobs():
        began = job.name.removeprefix(PREFIX).partition("-")[0] if job.name.startswith(PREFIX) else ""
        if began.isdecimal() and time.time() - int(began) > KEPT_S and job.status in _ENDED:
            with suppress(MosaicError):
                ray.delete(job.name)
