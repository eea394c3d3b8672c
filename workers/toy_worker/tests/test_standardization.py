"""The checks of the worker guide, on the toy worker. Run with: pytest workers/toy_worker/tests"""

import json
from pathlib import Path

from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import OK, assert_conforms, assert_layout
from toy_worker import get_worker_metadata
from toy_worker.cli import main
from toy_worker.config import ToyConfig


def test_its_folder_has_the_layout_of_the_guide():
    assert_layout(Path(__file__).parents[1])


def test_its_config_survives_a_round_trip():
    config = ToyConfig(run_id="test-001", seed=42)

    restored = ToyConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert (restored.run_id, restored.seed) == ("test-001", 42)
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.name, capabilities.worker_type) == ("Toy Worker", "toy")


def test_it_reports_that_it_started_and_completed(capfd, tmp_path, monkeypatch):
    monkeypatch.delenv("MOSAIC_RUN_DIR", raising=False)
    (tmp_path / "config.json").write_text(json.dumps({"run_id": "test-001", "steps": 10}))

    assert main(["--config", str(tmp_path / "config.json")]) == 0

    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    events = [line["event"] for line in lines if "event" in line]
    assert (events[0], events[-1]) == ("run_started", "run_completed")
    assert sum(line.get("event_type") == "step" for line in lines) == 10


def test_it_keeps_the_contract():
    card = assert_conforms("toy_worker")

    assert {check.outcome for check in card.checks} == {OK}
