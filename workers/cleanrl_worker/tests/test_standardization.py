"""The checks of the worker guide and the conformance lab, on the CleanRL worker."""

import json
from pathlib import Path

from cleanrl_worker import get_worker_metadata
from cleanrl_worker.cli import main
from cleanrl_worker.config import CleanRLWorkerConfig
from cleanrl_worker.schema import LAB
from mosaic_sdk.contract import WorkerCapabilities, WorkerConfig, WorkerMetadata
from mosaic_sdk.testing import assert_conforms, assert_layout

# Importing torch takes minutes on a busy machine.
LIMIT_S = 600.0


def test_its_config_offers_what_every_worker_config_does():
    config = CleanRLWorkerConfig.from_dict({"run_id": "test-001", "seed": 42, "extras": {"learning_rate": 1e-3}})

    restored = CleanRLWorkerConfig.from_dict(config.to_dict())

    assert isinstance(config, WorkerConfig)
    assert (restored.run_id, restored.seed) == ("test-001", 42)
    assert restored.to_dict() == config.to_dict()


def test_it_describes_itself():
    metadata, capabilities = get_worker_metadata()

    assert isinstance(metadata, WorkerMetadata)
    assert isinstance(capabilities, WorkerCapabilities)
    assert (metadata.name, capabilities.worker_type) == ("CleanRL Worker", "cleanrl")


def test_a_run_starts_measures_and_completes(capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("MOSAIC_RUN_DIR", str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"run_id": "test-001", **LAB["short"]}))

    code = main(["--config", str(tmp_path / "config.json")])

    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line.startswith("{")]
    events = [line["event"] for line in lines if "event" in line]
    assert code == 0
    assert (events[0], events[-1]) == ("run_started", "run_completed")
    assert any(line.get("event_type") == "episode" for line in lines)
    assert any(line.get("event_type") == "metric" for line in lines)


def test_the_worker_keeps_the_contract():
    assert_conforms("cleanrl_worker", grace_s=60.0, limit_s=LIMIT_S)


def test_it_has_the_layout_of_every_worker():
    assert_layout(Path(__file__).parents[1])
