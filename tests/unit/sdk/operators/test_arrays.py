"""Arrays in JSON lines, and the digest of an observation."""

import builtins
import json
import subprocess
import sys

import numpy as np
import pytest
from mosaic_sdk.operators import arrays
from mosaic_sdk.operators.digest import observation_digest

DTYPES = ["bool", "uint8", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]


def through_json(value):
    return arrays.decode(json.loads(json.dumps(arrays.encode(value))))


def test_small_arrays_are_lists_and_large_ones_bytes():
    assert arrays.encode({"a": np.zeros(1024), "b": (np.int64(3), "x", None)}) == {
        "a": [0.0] * 1024,
        "b": [3, "x", None],
    }
    assert list(arrays.encode(np.zeros(1025))) == ["__array__"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("byteorder", "<>")
def test_large_arrays_survive_whatever_their_dtype_order_and_layout(dtype, byteorder):
    array = (np.arange(2400).reshape(20, 30, 4) % 100).astype(np.dtype(dtype).newbyteorder(byteorder))

    for given in (array, array[::2], array.T, np.asfortranarray(array)):
        found = through_json({"deep": [given]})["deep"][0]

        assert found.dtype == np.dtype(dtype)
        assert np.array_equal(found, given)
        found[0] = 1  # it can be written


def test_without_numpy_they_become_lists(monkeypatch):
    encoded = arrays.encode(np.arange(1200, dtype="float32").reshape(30, 20, 2))
    monkeypatch.setattr(arrays, "_numpy", lambda: None)

    assert arrays.decode(encoded) == np.arange(1200).reshape(30, 20, 2).tolist()


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (3, "one of the dtypes bool"),
        ({"dtype": "object", "shape": [1], "base64": ""}, "one of the dtypes bool"),
        ({"dtype": "uint8", "shape": [-1], "base64": ""}, "must be a list of integers"),
        ({"dtype": "uint8", "shape": [2], "base64": "!!"}, "must be base64"),
        ({"dtype": "uint8", "shape": [2], "base64": None}, "must be base64"),
        ({"dtype": "uint8", "shape": [1 << 40], "base64": "AAAA"}, "does not have 3 bytes"),
    ],
)
def test_bytes_that_do_not_match_are_refused(about, message):
    with pytest.raises(ValueError, match=message):
        arrays.decode({"__array__": about})


def test_a_value_is_restored_as_its_space_has_it():
    box = {"type": "Box", "shape": [2, 2], "dtype": "uint8", "low": 0, "high": 255}
    space = {"type": "Dict", "spaces": {"image": box, "way": {"type": "Discrete", "n": 4}, "say": {"type": "Text"}}}

    found = arrays.restore({"image": [[1, 2], [3, 4]], "way": 3, "say": "go", "more": 1}, space)

    assert (found["image"].dtype, found["image"].tolist()) == (np.dtype("uint8"), [[1, 2], [3, 4]])
    assert (found["way"], found["say"], list(found)) == (3, "go", ["image", "way", "say"])
    with pytest.raises(ValueError, match=r"must have the shape \[2, 2\]"):
        arrays.restore([1, 2], box)
    with pytest.raises(ValueError, match="must be an object with: image, way, say"):
        arrays.restore({"image": 1}, space)


def test_equal_observations_have_equal_digests_whatever_their_classes():
    plain = {"image": [[1, 2], [3, 4]], "speed": 0.10000000149011612, "mission": "go", "on": True}
    library = {
        "mission": "go",
        "image": np.asarray([[1, 2], [3, 4]], "uint8"),
        "speed": np.float32(0.1),
        "on": np.True_,
    }
    wide = {**library, "image": np.asarray([[1, 2], [3, 4]], "float64"), "speed": 0.1, "on": 1}

    assert observation_digest(plain) == observation_digest(library) == observation_digest(wide)
    assert observation_digest(np.zeros(3)) == observation_digest((0, -0.0, False))
    assert len(observation_digest(plain)) == 16


@pytest.mark.parametrize("other", [{"a": 2}, {"b": 1}, [1], 1, "1", None, {"a": 1.5}, {"a": float("nan")}])
def test_other_observations_have_other_digests(other):
    assert observation_digest({"a": 1}) != observation_digest(other)


def test_the_digest_of_odd_values():
    assert observation_digest(float("nan")) == observation_digest(np.float32("nan"))
    assert observation_digest(1e300) == observation_digest(1e300)
    assert observation_digest(builtins.object()) == observation_digest(builtins.object())


def test_the_digest_is_the_same_without_numpy_and_in_every_process():
    program = "from mosaic_sdk.operators.digest import observation_digest as d; print(d({'b': [1, 2.5], 'a': 'x'}))"

    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert told.stdout.strip() == observation_digest({"a": "x", "b": np.asarray([1, 2.5])})
