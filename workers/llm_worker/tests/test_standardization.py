"""The checks of the worker guide (docs/howto/new-worker.md), on the LLM worker."""

import json
from pathlib import Path

import pytest
from llm_worker import get_worker_metadata, get_worker_schema
from llm_worker.cli import main
from llm_worker.config import LlmConfig
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import OK, SKIPPED, assert_conforms, assert_layout


def test_its_folder_has_the_layout_of_the_guide():
    assert_layout(Path(__file__).parents[1])


def test_its_config_survives_a_round_trip():
    config = LlmConfig(run_id="test-001", seed=42, model="m")

    restored = LlmConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert (restored.run_id, restored.seed) == ("test-001", 42)
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.name, capabilities.worker_type) == ("LLM Worker", "llm")


def test_the_daemon_knows_how_to_start_it_as_an_operator():
    assert get_worker_schema()["x-mosaic-interactive"] == {"settings": {}, "arguments": ["--interactive"]}


@pytest.mark.parametrize("arguments", [[], ["--dry-run"]])
def test_alone_it_refuses_to_run_and_says_how_it_is_used(tmp_path, capfd, arguments):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"run_id": "R1", "model": "m"}))

    code = main(["--config", str(path), *arguments])

    said = capfd.readouterr()
    if arguments:
        assert (code, said.out.startswith("The config is valid.")) == (0, True)
    else:
        assert code == 2
        assert "mosaic eval --env ENV --operator llm:MODEL" in said.err


def test_it_keeps_the_contract(server):
    space = {"type": "Discrete", "n": 3, "start": 0}

    card = assert_conforms("llm_worker", lab={"agent": {**server, "action_space": space}})

    outcomes = {check.name: check.outcome for check in card.checks}
    assert outcomes["agent"] == outcomes["plain run refused"] == OK
    assert outcomes["interactive"] == SKIPPED
