import json
from dataclasses import asdict

import pytest
from mosaic_sdk.contract import WorkerCapabilities

from mosaic.catalog.capabilities import read_capabilities
from mosaic.model.errors import BadConfig


def test_what_a_descriptor_says_is_read_back():
    reported = json.loads(json.dumps(asdict(WorkerCapabilities(worker_type="toy", env_families=("grid",)))))

    assert read_capabilities(json.dumps(reported)) == reported


def test_an_empty_text_gives_no_capabilities():
    assert read_capabilities("") == {}


@pytest.mark.parametrize(
    ("reported", "field"),
    [
        ({"worker_type": 3}, "worker_type"),
        ({"env_families": "grid"}, "env_families"),
        ({"env_families": [1]}, "env_families"),
        ({"max_agents": True}, "max_agents"),
        ({"max_agents": -1}, "max_agents"),
        ({"max_agents": None}, "max_agents"),
        ({"gpu_memory_mb": "8 GB"}, "gpu_memory_mb"),
        ({"requires_gpu": "no"}, "requires_gpu"),
    ],
)
def test_an_invalid_field_is_named(reported, field):
    with pytest.raises(BadConfig, match=f"capabilities_json: {field}: must be "):
        read_capabilities(json.dumps(reported))


@pytest.mark.parametrize("text", ["{", "[]", "3", "NaN", '{"x": NaN}', "[" * 5_000])
def test_anything_but_an_object_is_refused(text):
    with pytest.raises(BadConfig, match=r"^capabilities_json: "):
        read_capabilities(text)
