"""Exports, read by the programs they are for: TensorBoard, W&B and safetensors."""

import json
import math

import numpy as np
import pytest
from mosaic_sdk.export import Raw, write_safetensors

from mosaic.client.events import Episode, Metric
from mosaic.client.run import Run
from mosaic.exports import tensorboard, wandb
from mosaic.exports.stored import rows_of
from mosaic.wire import mosaic_pb2 as pb

RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
AT = 1_700_000_000.0


@pytest.fixture
def exported():
    """A run, and what it measured: values, one that is not a number, and two episodes."""
    info = pb.RunInfo(run_id=RUN_ID, name="first", worker_name="toy", created_at=AT, experiment="seeds", tags=["demo"])
    info.state = pb.TERMINATED
    info.settings_json = json.dumps({"learning_rate": 0.001, "note": "a|b"})
    ts_ns = int(AT * 1e9)
    events = [Metric(n, ts_ns + n * 10**9, n * 10, {"loss": 1 / n, "odd": math.nan}, b"") for n in range(1, 2001)]
    events += [Episode(n, ts_ns, n, 7.5, 20, 0, "", True, False, b"", 20 * n + 20) for n in (0, 1)]
    return Run.from_wire(info), events


def test_tensorboard_reads_every_value_with_its_step_and_time(exported, run, tmp_path):
    of, events = exported
    tensorboard.write_run(tmp_path / "board", of, rows_of(events))

    read = run(
        """
        import json, sys
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        found = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "tensors": 0})
        found.Reload()
        points = {tag: found.Scalars(tag) for tag in found.Tags()["scalars"]}
        values = {tag: [[one.wall_time, one.step, one.value] for one in all_] for tag, all_ in points.items()}
        text = found.Tensors("settings")[0].tensor_proto.string_val[0].decode()
        print(json.dumps([values, text]))
        """.replace("\n        ", "\n"),
        str(tmp_path / "board"),
        observed=False,
    )

    values, text = json.loads(read.said[-1])
    assert sorted(values) == ["episode/length", "episode/return", "loss", "odd"]
    assert len(values["loss"]) == 2000
    assert values["loss"][1] == [AT + 2, 20, 0.5]
    assert values["episode/return"] == [[AT, 20, 7.5], [AT, 40, 7.5]]
    assert "|learning_rate|0.001|" in text


def test_wandb_reads_every_record(exported, run, tmp_path):
    of, events = exported
    wandb.write_run(tmp_path, of, rows_of(events))
    (file,) = tmp_path.glob("offline-run-*/run-*.wandb")

    read = run(
        """
        import json, sys
        from google.protobuf.json_format import MessageToDict
        from wandb.proto.wandb_internal_pb2 import Record
        from wandb.sdk.internal.datastore import DataStore
        store = DataStore()
        store.open_for_scan(sys.argv[1])
        found = []
        while (data := store.scan_data()) is not None:
            record = Record()
            record.ParseFromString(data)
            found.append(MessageToDict(record, preserving_proto_field_name=True))
        print(json.dumps(found))
        """.replace("\n        ", "\n"),
        str(file),
        observed=False,
    )

    records = json.loads(read.said[-1])
    started = next(record["run"] for record in records if "run" in record)
    rows = [{item["nested_key"][0]: json.loads(item["value_json"]) for item in record["history"]["item"]}
            for record in records if "history" in record]  # fmt: skip
    axes = {record["metric"]["name"]: record["metric"]["step_metric"] for record in records if "metric" in record}
    assert (started["run_id"], started["display_name"], started["run_group"]) == (RUN_ID.lower(), "first", "seeds")
    assert started["tags"] == ["demo"]
    assert [int(record["num"]) for record in records] == list(range(1, len(records) + 1))
    assert len(rows) == 2002
    assert {key: rows[1][key] for key in ("loss", "global_step", "_step", "_timestamp", "_runtime")} == {
        "loss": 0.5, "global_step": 20, "_step": 1, "_timestamp": AT + 2, "_runtime": 2.0}  # fmt: skip
    assert axes == dict.fromkeys(["loss", "odd", "episode/return", "episode/length"], "global_step")
    assert "exit" in records[-1]


def test_safetensors_reads_the_arrays(run, tmp_path):
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = tmp_path / "m.safetensors"
    write_safetensors(str(path), {"a.w": weights, "b": np.array(7), "c": Raw("bfloat16", (1,), b"\x80\x3f")})

    read = run(
        "import json, sys; from safetensors.torch import load_file; found = load_file(sys.argv[1]); "
        "print(json.dumps({name: part.tolist() for name, part in found.items()}))",
        str(path),
        observed=False,
    )

    assert json.loads(read.said[-1]) == {"a.w": weights.tolist(), "b": 7, "c": [1.0]}
