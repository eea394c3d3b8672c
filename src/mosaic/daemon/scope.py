"""Scope: what the token of a driver allows, decided by the message of the call.

A driver is a run that starts and cancels the other runs of its experiment: a hyper-parameter search (ADR 30).

    SubmitRun                 a worker of the catalog, in the driver's experiment, with a key of this experiment
    CancelRun GetRun          a run of the experiment, by its whole id
    QueryCurve                the same
    WatchRuns                 the same, each of them named
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from mosaic.model.errors import NotAllowed
from mosaic.registry.registry import Registry
from mosaic.registry.thread import RegistryThread
from mosaic.submit.document import read_document

# What a driver may set. Programs, folders, variables, parents and other drivers are the owner's to name.
_METADATA = frozenset({"run_name", "tags", "notes", "worker", "experiment"})
_WORKER = frozenset({"module", "name", "variant", "config", "observe"})
_PAYLOAD = frozenset({"on", "requeue_as_resume", "resources", "limits"})  # not parts: they are not in its experiment


class Scope:
    """Refuses what concerns anything but the runs of one experiment; see `check`."""

    def __init__(self, registry: RegistryThread) -> None:
        self._registry = registry

    async def check(self, experiment: str, method: str, request: Any) -> None:
        """NotAllowed unless this call is about runs of `experiment` alone."""
        if method == "SubmitRun":
            await asyncio.to_thread(_check_submit, experiment, request.config_json, request.idempotency_key)
        elif method in ("CancelRun", "GetRun", "QueryCurve"):
            await self._check_runs(experiment, [request.run_id])
        elif method == "WatchRuns" and request.run_ids:
            await self._check_runs(experiment, request.run_ids)
        else:
            raise NotAllowed(f"A driver may not call {method}, or not without naming runs of '{experiment}'.")

    async def _check_runs(self, experiment: str, run_ids: Iterable[str]) -> None:
        strangers = await self._registry.do(lambda r: _outside(r, experiment, run_ids))
        if strangers:
            # The same for a run that does not exist: a driver learns nothing about other runs.
            raise NotAllowed(f"'{strangers[0]}' is not the id of a run of the experiment '{experiment}'.")


def _outside(registry: Registry, experiment: str, run_ids: Iterable[str]) -> list[str]:
    found = {run_id: registry.with_id(run_id) for run_id in run_ids}
    return [run_id for run_id, record in found.items() if not record or record.membership.experiment != experiment]


def _check_submit(experiment: str, config_json: str, key: str) -> None:
    document = read_document(config_json)
    metadata = _object(document, "metadata")
    _refuse_others("metadata", metadata, _METADATA)
    _refuse_others("metadata.worker", _object(metadata, "worker"), _WORKER)
    _refuse_others("payload", _object(document, "payload"), _PAYLOAD)
    if _object(metadata, "experiment").get("name") != experiment:
        raise NotAllowed(f"A driver may only submit runs of its own experiment: '{experiment}'.")
    # A key without this start may belong to another run, which the reply would describe.
    if not key.startswith(f"experiment/{experiment}/"):
        raise NotAllowed(f"The idempotency key of a driver's run must start with experiment/{experiment}/.")


def _refuse_others(path: str, given: Mapping[str, Any], allowed: Iterable[str]) -> None:
    for name in sorted(given.keys() - set(allowed)):
        raise NotAllowed(f"A driver may not set {path}.{name}.")


def _object(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}
