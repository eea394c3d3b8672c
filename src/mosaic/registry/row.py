"""Rows of the table `runs`: built from a config, read as a record."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from mosaic.model.run import GpuRequest, Limits, Lineage, ResourceRequest, RunConfig, RunRecord
from mosaic.model.states import RunState
from mosaic.model.task import Task

COLUMNS = (
    "id, name, area, worker_name, state, reason, attempt, created_at, updated_at, gpus_requested, gpus_mandatory, "
    "limits, tags, total_steps, cancel_requested, waiting_for, held_by, telemetry, revision, "
    "cpus, memory_mb, parent_run_id, relation, settings_note, algo, env_id, seed"
)


def new_row(config: RunConfig, now: float, revision: int) -> dict[str, object]:
    """The columns of a newly submitted run; all other columns have defaults."""
    task = Task.of(config.settings.values)
    return {
        "id": config.run_id,
        "name": config.name,
        "area": config.area,
        "worker_name": config.worker_name,
        "state": RunState.INIT.value,
        "created_at": now,
        "updated_at": now,
        "gpus_requested": config.gpus.requested,
        "gpus_mandatory": config.gpus.mandatory,
        "limits": json.dumps(asdict(config.limits)),
        "tags": json.dumps(config.tags),
        "total_steps": config.total_steps,
        "idempotency_key": config.idempotency_key,
        "config_hash": config.config_hash,
        "cpus": config.resources.cpus,
        "memory_mb": config.resources.memory_mb,
        "parent_run_id": config.lineage.parent_run_id,
        "relation": config.lineage.relation,
        "settings": json.dumps(config.settings.values),
        "settings_note": config.settings.note,
        "algo": task.algo,
        "env_id": task.env_id,
        "seed": task.seed,
        "revision": revision,
    }


def to_record(row: Sequence[Any], granted: tuple[str, ...]) -> RunRecord:
    """A record from the values of `COLUMNS`."""
    return RunRecord(
        run_id=row[0],
        name=row[1],
        area=row[2],
        worker_name=row[3],
        state=RunState(row[4]),
        reason=row[5],
        attempt=row[6],
        created_at=row[7],
        updated_at=row[8],
        gpus=GpuRequest(row[9], bool(row[10])),
        granted=granted,
        limits=_limits(row[11]),
        tags=_tags(row[12]),
        total_steps=row[13],
        cancel_requested=bool(row[14]),
        waiting_for=row[15],
        held_by=row[16],
        telemetry=row[17],
        revision=row[18],
        resources=ResourceRequest(row[19], row[20]),
        lineage=Lineage(row[21], row[22]),
        settings_note=row[23],
        task=Task(row[24], row[25], row[26]),
    )


# Most runs have the same few limits and tags, so a listing of 10,000 runs parses each text once.
@lru_cache(maxsize=1024)
def _limits(text: str) -> Limits:
    return Limits(**json.loads(text))


@lru_cache(maxsize=1024)
def _tags(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
