"""Exports of checkpoints: the safetensors file, and a worker's command line."""

import json
import struct

import numpy as np
import pytest
from mosaic_sdk import checkpoints
from mosaic_sdk.export import Exported, Raw, flat, run_export, write_safetensors


def read_safetensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    about = header.pop("__metadata__", {})
    body = data[8 + length :]
    return about, {
        name: (part["dtype"], part["shape"], body[slice(*part["data_offsets"])]) for name, part in header.items()
    }


def test_arrays_are_written_one_after_the_other(tmp_path):
    weights = np.arange(6, dtype=np.float32).reshape(2, 3)
    arrays = {"a.weight": weights, "b": np.array(7, np.int64), "c": np.array([1.5], ">f8"), "d": weights.T}

    write_safetensors(tmp_path / "m.safetensors", {**arrays, "e": Raw("bfloat16", (1,), b"\x80\x3f")}, {"format": "pt"})

    about, found = read_safetensors(tmp_path / "m.safetensors")
    assert about == {"format": "pt"}
    assert found["a.weight"] == ("F32", [2, 3], weights.tobytes())
    assert found["b"] == ("I64", [], np.array(7, np.int64).tobytes())
    assert found["c"] == ("F64", [1], np.array([1.5], "<f8").tobytes())
    assert found["d"] == ("F32", [3, 2], weights.T.tobytes())
    assert found["e"] == ("BF16", [1], b"\x80\x3f")


def test_a_dtype_that_the_format_does_not_have_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ValueError, match="words is an array of"):
        write_safetensors(tmp_path / "m.safetensors", {"words": np.array(["a"])})

    assert list(tmp_path.iterdir()) == []


def test_nested_arrays_get_dotted_names_and_other_values_are_left_out():
    one = np.zeros(1)

    assert flat({"agent": {"actor.0": one}, "rms": [{"mean": one, "label": "x"}], "n": 3}) == {
        "agent.actor.0": one,
        "rms.0.mean": one,
    }


def test_the_command_line_writes_what_was_exported(tmp_path):
    path = tmp_path / "checkpoint-1.bin"
    path.write_bytes(b"1")
    checkpoints.commit(path, worker="acme", step=1, settings={})

    def export(checkpoint, folder):
        return Exported(str(checkpoint.about["worker"]), {"w": "weights"}, left_out=("rng",))

    code = run_export(export, [str(path), str(tmp_path)])

    assert code == 0
    said = json.loads((tmp_path / "export.json").read_text())
    assert (said["library"], said["files"], said["left_out"]) == ("acme", {"w": "weights"}, ["rng"])


def test_a_checkpoint_that_is_missing_is_one_sentence(tmp_path, capsys):
    code = run_export(lambda *_: None, [str(tmp_path / "nothing"), str(tmp_path)])

    assert code == 1
    assert capsys.readouterr().err.startswith("There is no checkpoint")
