"""What a run takes in a reply, whatever its worker and its config contain."""

import json
from pathlib import Path

import pytest

from mosaic.model.run import RunRecord, RunSummary
from mosaic.model.states import RunState
from mosaic.model.task import Task
from mosaic.wire.bounds import LISTED_BYTES, WHOLE_BYTES, document_or_note
from mosaic.wire.convert import run_to_wire

LONG = "é" * 1_000_000


def record(**fields):
    return RunRecord(
        **{"run_id": "A", "name": "", "area": "runs", "worker_name": "toy", "state": RunState.INIT} | fields
    )


def test_an_ordinary_run_is_not_changed():
    values = {f"losses/metric_{number}": 0.5 for number in range(150)}

    info = run_to_wire(record(reason="why", tags=("a",)), Path("/x"), RunSummary(last_values=values))

    assert (info.reason, info.tags, dict(info.summary.last_values)) == ("why", ["a"], values)
    assert info.summary.values_left_out == 0


def test_a_run_with_long_texts_and_names_takes_a_limited_number_of_bytes():
    run = record(name=LONG, reason=LONG, telemetry=LONG, settings_note=LONG, tags=(LONG,) * 50, task=Task(LONG, LONG))
    values = {f"{number}{LONG}": 0.5 for number in range(10)} | {f"a/b/{number}": 1.0 for number in range(5_000)}
    summary = RunSummary(last_values=values | {"episode/return": 2.0}, values_left_out=1)

    info = run_to_wire(run, Path("/x"), summary)

    assert info.ByteSize() <= 3 * LISTED_BYTES
    assert info.reason.endswith("…")
    assert info.summary.last_values["episode/return"] == 2.0
    assert len(info.summary.last_values) + info.summary.values_left_out == 5_012


@pytest.mark.parametrize("total", [-1, 0])
def test_a_total_that_is_not_positive_is_ignored(total):
    info = run_to_wire(record(total_steps=50), Path("/x"), RunSummary(total_steps=total))

    assert info.total_steps == 50


def test_a_large_document_is_replaced_by_an_object_that_says_so():
    assert document_or_note('{"a": 1}', "The config") == '{"a": 1}'
    note = json.loads(document_or_note("x" * (WHOLE_BYTES + 1), "The config"))
    assert note == {"left out": "The config has 4,194,305 bytes, too many for a reply"}
