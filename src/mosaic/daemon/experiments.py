"""The calls about experiments: requests into plain values, answers into messages."""

import asyncio
import json
from typing import Any

from mosaic.daemon.submission import submit_all
from mosaic.daemon.trainer import Trainer
from mosaic.model.errors import BadConfig
from mosaic.model.experiment import MAX_BYTES
from mosaic.registry.registry import NewExperiment
from mosaic.wire import mosaic_pb2 as pb
from mosaic.wire.convert import experiment_to_wire, run_to_wire


async def submit_runs(trainer: Trainer, request: pb.SubmitRunsRequest) -> pb.SubmitRunsReply:
    """Add all runs, with their experiment, or none."""
    experiment = _new_experiment(request.experiment) if request.HasField("experiment") else None
    runs = [(run.config_json, run.idempotency_key) for run in request.runs]
    found = await submit_all(trainer, runs, experiment, request.is_dry_run)
    # Without summaries: a new run has none, and reading a thousand takes a while.
    infos = await asyncio.to_thread(lambda: [run_to_wire(record, trainer.rundir(record).path) for record, _ in found])
    return pb.SubmitRunsReply(runs=infos, is_new=[is_new for _, is_new in found])


async def put_experiment(trainer: Trainer, request: pb.PutExperimentRequest) -> pb.ExperimentInfo:
    wanted = _new_experiment(request)
    found = await trainer.registry.do(lambda r: r.experiments.put(*wanted))
    trainer.dispatcher.wake()  # its limit may have changed
    return experiment_to_wire(found)


def _new_experiment(request: pb.PutExperimentRequest) -> NewExperiment:
    note = request.note if request.HasField("note") else None
    return request.name, _document(request.document_json), note, request.must_be_new


def _document(text: str) -> dict[str, Any]:
    if len(text) > 4 * MAX_BYTES:
        raise BadConfig("experiment", f"has {len(text):,} bytes; the maximum is {MAX_BYTES:,}.")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadConfig("experiment", f"is not valid JSON ({error}).") from None
    if not isinstance(found, dict):
        raise BadConfig("experiment", "must be a JSON object.")
    return found
